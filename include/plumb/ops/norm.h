/* SPDX-License-Identifier: Apache-2.0
 *
 * The RMSNorm family: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_NORM_H
#define PLUMB_OPS_NORM_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[t,:] = x[t,:] / sqrt(mean(x^2) + eps) * weight   [7.1] */
typedef struct plumb_rms_norm_params {
  int64_t struct_size;    /* of this structure, in bytes */
  const uint16_t* x;      /* bf16 [tokens, hidden] */
  const uint16_t* weight; /* bf16 [hidden], optional */
  uint16_t* out;          /* bf16 [tokens, hidden] */
  int64_t tokens, hidden;
  int64_t x_row_stride;
  int64_t out_row_stride;
  float eps;
  plumb_rounding rounding;
  plumb_stream stream;
} plumb_rms_norm_params;

typedef enum plumb_added_sum {
  PLUMB_SUM_BF16 = 0,        /* the stored bf16 sum */
  PLUMB_SUM_FP32 = 1,        /* the fp32 sum */
  PLUMB_SUM_FP32_SQUARES = 2 /* mean square of the fp32 sum, rows of the stored sum */
} plumb_added_sum;

/* In place: residual = bf16(x + residual), then x = rms_norm of this sum [7.2]. x and residual
 * do not overlap. */
typedef struct plumb_fused_add_rms_norm_params {
  int64_t struct_size;    /* of this structure, in bytes */
  uint16_t* x;            /* bf16 [tokens, hidden]: in: summand; out: the normalised sum */
  uint16_t* residual;     /* bf16 [tokens, hidden]: in: summand; out: the rounded sum */
  const uint16_t* weight; /* bf16 [hidden] contiguous */
  int64_t tokens, hidden;
  int64_t x_row_stride;
  int64_t residual_row_stride;
  float eps;
  plumb_rounding rounding;
  plumb_added_sum sum; /* which sum is normalised */
  plumb_stream stream;
} plumb_fused_add_rms_norm_params;

/* enorm of the masked embedding, and hnorm of each of the hc_mult hidden slots   [7.3] */
typedef struct plumb_mtp_input_rms_norm_params {
  int64_t struct_size;             /* of this structure, in bytes */
  const uint16_t* embeds;          /* bf16 [tokens, hidden] */
  const uint16_t* previous_hidden; /* bf16 [tokens, hc_mult, hidden] */
  const int64_t* positions;        /* [tokens]; at position 0 the embedding counts as 0 */
  const uint16_t* enorm_weight;    /* bf16 [hidden] */
  const uint16_t* hnorm_weight;    /* bf16 [hidden] */
  uint16_t* out_embeds;            /* bf16 [tokens, hidden] */
  uint16_t* out_hidden;            /* bf16 [tokens, hc_mult, hidden] */
  int64_t tokens, hidden, hc_mult;
  int64_t out_embeds_row_stride, out_hidden_token_stride, out_hidden_slot_stride;
  float eps;
  plumb_stream stream;
  plumb_rounding rounding;
} plumb_mtp_input_rms_norm_params;

/* rms_norm of the hidden states before the shared head   [7.4] */
typedef struct plumb_mtp_shared_head_rms_norm_params {
  int64_t struct_size;    /* of this structure, in bytes */
  const uint16_t* x;      /* bf16 [tokens, hidden] contiguous */
  const uint16_t* weight; /* bf16 [hidden] */
  uint16_t* out;          /* bf16 [tokens, hidden] */
  int64_t tokens, hidden;
  int64_t out_row_stride;
  float eps;
  plumb_stream stream;
  plumb_rounding rounding;
} plumb_mtp_shared_head_rms_norm_params;

/* Row norms of the query's and of the key's latent in one call   [7.5] */
typedef struct plumb_q_kv_rms_norm_params {
  int64_t struct_size;       /* of this structure, in bytes */
  const uint16_t* q;         /* bf16 [tokens, q_hidden] */
  const uint16_t* kv;        /* bf16 [tokens, kv_hidden] */
  const uint16_t* q_weight;  /* bf16 [q_hidden] */
  const uint16_t* kv_weight; /* bf16 [kv_hidden] */
  uint16_t* out_q;           /* bf16 [tokens, q_hidden] */
  uint16_t* out_kv;          /* bf16 [tokens, kv_hidden] */
  int64_t tokens, q_hidden, kv_hidden;
  int64_t q_row_stride, kv_row_stride;
  int64_t out_q_row_stride, out_kv_row_stride;
  float eps;
  plumb_stream stream;
  plumb_rounding rounding;
} plumb_q_kv_rms_norm_params;

/* RMS norm of each head without a weight, then RoPE of its last 64 dims [7.6]. Pairs are
 * adjacent elements (2i, 2i + 1); row p of cos_sin belongs to position p. rounding: TWICE rounds
 * the norm to bf16 before RoPE. */
typedef struct plumb_q_head_rms_norm_rope_params {
  int64_t struct_size;      /* of this structure, in bytes */
  const uint16_t* q;        /* bf16 [tokens, heads, 512]; null: `out` is updated in place */
  const int64_t* positions; /* [tokens] */
  const float* cos_sin;     /* fp32 [positions, 64]: 32 cosines, 32 sines */
  uint16_t* out;            /* bf16 [tokens, heads, 512] */
  int64_t tokens, heads;
  int64_t q_token_stride; /* heads of a token are contiguous */
  int64_t out_token_stride, out_head_stride;
  float eps;
  plumb_stream stream;
  plumb_rounding rounding;
} plumb_q_head_rms_norm_rope_params;

/* Rotates the last 64 of each head's 512 dims back, in x or into `out`   [2.11] */
typedef struct plumb_inverse_rope_params {
  int64_t struct_size;      /* of this structure, in bytes */
  uint16_t* x;              /* bf16 [tokens, heads, 512] */
  const int64_t* positions; /* [tokens] */
  const float* cos_sin;     /* fp32 [positions, 64]: 32 cosines, 32 sines */
  int64_t tokens, heads;
  int64_t x_token_stride; /* heads of a token are contiguous */
  plumb_stream stream;
  uint16_t* out; /* bf16 [tokens, heads, 512], all dims of x; null: x is updated in place */
  int64_t out_token_stride, out_head_stride;
} plumb_inverse_rope_params;

#ifdef __cplusplus
}
#endif

#endif
