/* SPDX-License-Identifier: Apache-2.0
 *
 * The MoE router: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_ROUTER_H
#define PLUMB_OPS_ROUTER_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In which format scores are added to the bias and compared   [8.1] */
typedef enum plumb_router_arithmetic {
  PLUMB_ROUTER_FP32 = 0, /* fp32 throughout; a NaN choice is above +infinity */
  /* the logits' own: the score, the bias and both sums are rounded to it, the weights are made of
     the rounded score; a logit that is not finite counts as -infinity, and a row with fewer than
     topk_group groups above -infinity gets experts 0 .. topk-1 with the weight 1/topk, unscaled */
  PLUMB_ROUTER_LOGITS_FORMAT = 1
} plumb_router_arithmetic;

/* What a weight is made of   [8.2] */
typedef enum plumb_router_weight {
  PLUMB_WEIGHT_SCORE = 0,    /* the score itself */
  PLUMB_WEIGHT_RECOVERED = 1 /* (score + bias) - bias: loses what the sum rounds away */
} plumb_router_weight;

/* V3.2: sigmoid scores, the best groups by their two best experts, the best experts of those [8.1]
 */
typedef struct plumb_grouped_topk_params {
  int64_t struct_size; /* of this structure, in bytes */
  const void* logits;  /* fp32 or bf16 [tokens, experts] */
  const float* bias;   /* fp32 [experts]: for the choice, not for the weight */
  float* weights;      /* fp32 [tokens, topk] */
  int32_t* ids;        /* [tokens, topk], descending score + bias */
  int64_t tokens;
  int64_t logits_row_stride;
  int64_t experts;
  int64_t n_group; /* at most 32; divides experts into groups of two or more */
  int64_t topk_group;
  int64_t topk; /* at most 32, and no more than topk_group groups have */
  int64_t weights_row_stride, ids_row_stride;
  plumb_format logits_format; /* PLUMB_F32 or PLUMB_BF16 */
  plumb_router_arithmetic arithmetic;
  int32_t renormalize;
  float routed_scaling_factor;
  plumb_stream stream;
} plumb_grouped_topk_params;

/* V4: square root of softplus, no groups   [8.2] */
typedef struct plumb_sqrt_softplus_topk_params {
  int64_t struct_size;           /* of this structure, in bytes */
  const void* logits;            /* fp32 or bf16 [tokens, experts] */
  const float* bias;             /* fp32 [experts] */
  const uint8_t* is_padding;     /* [tokens], optional, read by the kernel: id -1, weight 0 */
  float* weights;                /* fp32 [tokens, topk] */
  int32_t* ids;                  /* [tokens, topk] */
  int32_t* token_expert_indices; /* [tokens, topk], optional: k * tokens + t */
  int64_t tokens;
  int64_t logits_row_stride;
  int64_t experts; /* at most 1024 */
  int64_t topk;    /* at most 32 */
  int64_t weights_row_stride, ids_row_stride, token_expert_indices_row_stride;
  plumb_format logits_format;
  plumb_router_weight weight;
  int32_t renormalize;
  float routed_scaling_factor;
  plumb_stream stream;
} plumb_sqrt_softplus_topk_params;

/* V4, first layers: experts by token id, weights by the logits   [8.3] */
typedef struct plumb_hash_routing_params {
  int64_t struct_size;      /* of this structure, in bytes */
  const void* logits;       /* fp32 or bf16 [tokens, experts] */
  const int32_t* input_ids; /* [tokens]; of padding too, a legal one */
  const int32_t* tid2eid;   /* [vocabulary, topk] */
  float* weights;           /* fp32 [tokens, topk]; where the table's id is no expert, untouched */
  int32_t* ids;             /* [tokens, topk]; the same */
  int64_t tokens;
  int64_t logits_row_stride;
  int64_t experts;
  int64_t topk; /* at most 32 */
  int64_t weights_row_stride, ids_row_stride;
  plumb_format logits_format;
  int32_t renormalize;
  float routed_scaling_factor;
  plumb_stream stream;
} plumb_hash_routing_params;

#ifdef __cplusplus
}
#endif

#endif
