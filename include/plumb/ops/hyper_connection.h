/* SPDX-License-Identifier: Apache-2.0
 *
 * Hyper-connections (MHC): parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_HYPER_CONNECTION_H
#define PLUMB_OPS_HYPER_CONNECTION_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rounding of the products with fn, summed over splits, before the product with 1/rms. */
typedef enum plumb_mixes {
  PLUMB_MIXES_FP32 = 0,
  PLUMB_MIXES_BF16 = 1 /* rounded to bf16, as a bf16 matrix product returns them */
} plumb_mixes;

/* Hyper-connection mixing before a sublayer   [6.1, 6.2]; hc_mult is 4 */
typedef struct plumb_mhc_pre_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const uint16_t* residual;    /* bf16 [tokens, 4, hidden] */
  const float* fn;             /* fp32 [24, 4 * hidden], K order (slot, hidden) */
  const float* scale;          /* fp32 [3] */
  const float* base;           /* fp32 [24] */
  const uint16_t* norm_weight; /* bf16 [hidden], optional: fused norm of layer_input */
  float* post;                 /* fp32 [tokens, 4] */
  float* comb;                 /* fp32 [tokens, 4, 4] */
  uint16_t* layer_input;       /* bf16 [tokens, hidden] */
  float* partial_mixes; /* fp32 [splits, tokens, 24]: sum_k x_k fn[c,k] of the split (visible) */
  float* partial_square_sums; /* fp32 [splits, tokens]: sum x^2 of the split (visible) */
  int64_t tokens, hidden;
  int64_t residual_token_stride, residual_slot_stride;
  int64_t splits; /* split s of K = 4 hidden is [K s / splits, K (s + 1) / splits); splits are
                     summed in order */
  int64_t post_row_stride, comb_token_stride, layer_input_row_stride;
  int32_t sinkhorn_iterations;
  float rms_eps, pre_eps, sinkhorn_eps, norm_eps, post_mult;
  plumb_stream stream;
  plumb_scaled scaled; /* OPERAND: streams are multiplied by 1/rms before the product with fn, and
                          partial_mixes is not judged */
  plumb_mixes mixes;
} plumb_mhc_pre_params;

/* out[n,h] = post[n] x[h] + sum_m comb[m,n] residual[m,h]   [6.3] */
typedef struct plumb_mhc_post_params {
  int64_t struct_size;      /* of this structure, in bytes */
  const uint16_t* x;        /* bf16 [tokens, hidden] */
  const uint16_t* residual; /* bf16 [tokens, 4, hidden] */
  const float* post;        /* fp32 [tokens, 4] */
  const float* comb;        /* fp32 [tokens, 4, 4] */
  uint16_t* out;            /* bf16 [tokens, 4, hidden] */
  int64_t tokens, hidden;
  int64_t residual_token_stride, residual_slot_stride;
  int64_t out_token_stride, out_slot_stride;
  plumb_stream stream;
} plumb_mhc_post_params;

typedef enum plumb_gemm_operand {
  PLUMB_GEMM_OPERAND_FP32 = 0,      /* the streams of the square sum, times fn */
  PLUMB_GEMM_OPERAND_BF16_SPLIT = 1 /* the stored streams, times fn as the sum of two bf16 numbers:
                                       bf16(fn) and bf16 of the remainder */
} plumb_gemm_operand;

/* mhc_post, then mhc_pre of its result [6.5]. With at most unrounded_rows tokens the sums of
 * mhc_pre use the fp32 streams, with more tokens the stored streams. layer_input always uses the
 * stored streams. */
typedef struct plumb_mhc_fused_post_pre_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const uint16_t* x;           /* bf16 [tokens, hidden] */
  const uint16_t* residual;    /* bf16 [tokens, 4, hidden] */
  const float* post_before;    /* fp32 [tokens, 4]: post of the sublayer whose output is x */
  const float* comb_before;    /* fp32 [tokens, 4, 4] */
  const float* fn;             /* fp32 [24, 4 * hidden]; from here on as in mhc_pre */
  const float* scale;          /* fp32 [3] */
  const float* base;           /* fp32 [24] */
  const uint16_t* norm_weight; /* bf16 [hidden], optional */
  uint16_t* residual_out;      /* bf16 [tokens, 4, hidden], not `residual` */
  float* post;                 /* fp32 [tokens, 4] */
  float* comb;                 /* fp32 [tokens, 4, 4] */
  uint16_t* layer_input;       /* bf16 [tokens, hidden] */
  float* partial_mixes;        /* fp32 [splits, tokens, 24] (visible) */
  float* partial_square_sums;  /* fp32 [splits, tokens] (visible) */
  int64_t tokens, hidden;
  int64_t residual_token_stride, residual_slot_stride;
  int64_t splits;
  int64_t residual_out_token_stride, residual_out_slot_stride, post_row_stride, comb_token_stride,
      layer_input_row_stride;
  int32_t sinkhorn_iterations;
  float rms_eps, pre_eps, sinkhorn_eps, norm_eps, post_mult;
  plumb_stream stream;
  int64_t unrounded_rows;          /* 0: the sums always use the stored streams */
  plumb_gemm_operand gemm_operand; /* operands of the products with fn */
} plumb_mhc_fused_post_pre_params;

/* mhc_pre of four streams that are all equal to `residual`   [6.5] */
typedef struct plumb_mhc_pre_broadcast_params {
  int64_t struct_size;         /* of this structure, in bytes */
  const uint16_t* residual;    /* bf16 [tokens, hidden] */
  const float* fn;             /* fp32 [24, hidden]: summed over the streams */
  const float* scale;          /* fp32 [3]; from here on as in mhc_pre */
  const float* base;           /* fp32 [24] */
  const uint16_t* norm_weight; /* bf16 [hidden], optional */
  uint16_t* residual_out;      /* bf16 [tokens, 4, hidden]: residual, four times */
  float* post;                 /* fp32 [tokens, 4] */
  float* comb;                 /* fp32 [tokens, 4, 4] */
  uint16_t* layer_input;       /* bf16 [tokens, hidden] */
  float* partial_mixes;        /* fp32 [splits, tokens, 24] (visible), K = hidden */
  float* partial_square_sums;  /* fp32 [splits, tokens] (visible) */
  int64_t tokens, hidden;
  int64_t residual_token_stride;
  int64_t splits;
  int64_t residual_out_token_stride, residual_out_slot_stride, post_row_stride, comb_token_stride,
      layer_input_row_stride;
  int32_t sinkhorn_iterations;
  float rms_eps, pre_eps, sinkhorn_eps, norm_eps, post_mult;
  plumb_stream stream;
} plumb_mhc_pre_broadcast_params;

/* Gated sum of the four streams before the LM head   [6.4] */
typedef struct plumb_hc_head_params {
  int64_t struct_size;           /* of this structure, in bytes */
  const uint16_t* hidden_states; /* bf16 [tokens, 4, hidden] */
  const float* fn;               /* fp32 [4, 4 * hidden] */
  const float* scale;            /* fp32 [1] */
  const float* base;             /* fp32 [4] */
  uint16_t* out;                 /* bf16 [tokens, hidden] */
  int64_t tokens, hidden;
  int64_t hidden_token_stride, hidden_slot_stride;
  int64_t out_row_stride;
  float rms_eps, hc_eps;
  plumb_rounding rounding; /* TWICE: x * r is rounded to bf16 before the product with fn */
  plumb_stream stream;
} plumb_hc_head_params;

#ifdef __cplusplus
}
#endif

#endif
