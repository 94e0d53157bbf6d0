/* SPDX-License-Identifier: Apache-2.0
 *
 * The MoE router: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_ROUTER_H
#define PLUMB_OPS_ROUTER_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Format in which scores are added to the bias and compared   [8.1] */
typedef enum plumb_router_arithmetic {
  PLUMB_ROUTER_FP32 = 0, /* fp32 throughout */
  /* the logits' format: the score, the bias and both sums are rounded to it, and weights use the
   * rounded score */
  PLUMB_ROUTER_LOGITS_FORMAT = 1,
  /* as LOGITS_FORMAT, with the score tanh(x / 2) / 2 + 1/2, whose tanh is rounded as well */
  PLUMB_ROUTER_LOGITS_FORMAT_TANH = 2
} plumb_router_arithmetic;

/* Treatment of a non-finite logit [8.1]. Except with GUARD_ALL, a row with a NaN may get any
 * experts and any weights. */
typedef enum plumb_router_nonfinite {
  PLUMB_NONFINITE_ORDERED_BITS = 0, /* arithmetic: the score of +infinity is 1, of -infinity 0 */
  /* group scores and weights as above, but the expert is not chosen. If the kept groups have too
   * few finite logits, the remaining places hold any expert. */
  PLUMB_NONFINITE_GUARD_CHOICE_ONLY = 1,
  /* the choice is -infinity and the score 0, also in group scores. A row with fewer than
   * topk_group groups above -infinity gets experts 0 .. topk-1 with the weight 1/topk, unscaled. */
  PLUMB_NONFINITE_GUARD_ALL = 2
} plumb_router_nonfinite;

/* Shapes to which `arithmetic` and `nonfinite` apply   [8.1] */
typedef enum plumb_router_domain {
  PLUMB_DOMAIN_EVERYWHERE = 0,
  /* all except the shapes of vLLM's small-expert kernel, which uses fp32 and ordered bits: one
   * group, up to 512 experts, topk up to 8 (or 22); or up to 256 experts in groups of up to 32,
   * of which up to 4 are kept, topk up to 8 */
  PLUMB_DOMAIN_SMALL_EXPERTS_IN_FP32 = 1
} plumb_router_domain;

/* Rounding of the bias before it is added. It is always rounded unless the arithmetic is
 * PLUMB_ROUTER_FP32. */
typedef enum plumb_router_bias {
  PLUMB_BIAS_FP32 = 0,
  PLUMB_BIAS_LOGITS_FORMAT = 1 /* rounded to the logits' format */
} plumb_router_bias;

/* softplus(x) = ln(1 + e^x) for large x   [8.2] */
typedef enum plumb_softplus {
  PLUMB_SOFTPLUS_THRESHOLD_20 = 0, /* x above 20 */
  PLUMB_SOFTPLUS_NONE = 1          /* e^x and the score are infinite above 88.7 */
} plumb_softplus;

/* softplus(x) for negative x. */
typedef enum plumb_softplus_small {
  PLUMB_SOFTPLUS_LOG_1P_EXP = 0, /* the sum is rounded: below -16.64 the score is exactly 0 */
  PLUMB_SOFTPLUS_LOG1P = 1       /* e^x is not lost in a sum */
} plumb_softplus_small;

/* The score of a NaN logit   [8.2, 8.3] */
typedef enum plumb_nan_score {
  PLUMB_NAN_SCORE_ZERO = 0, /* 0; sqrt_softplus_topk chooses it last or as a score of 0 */
  PLUMB_NAN_SCORE_NAN = 1   /* NaN; sqrt_softplus_topk may give the row any experts and weights */
} plumb_nan_score;

/* Divisor of weights if the sum of scores is not above 0   [8.2, 8.3] */
typedef enum plumb_zero_sum {
  PLUMB_ZERO_SUM_ONE = 0,    /* 1 */
  PLUMB_ZERO_SUM_NAN = 1,    /* the sum: weights are NaN */
  PLUMB_ZERO_SUM_EPSILON = 2 /* the sum + 1e-20, also if the sum is above 0 */
} plumb_zero_sum;

/* Which of several experts or groups with equal scores is chosen   [8.1, 8.2] */
typedef enum plumb_router_ties {
  PLUMB_ROUTER_TIES_LOWER_ID = 0,
  PLUMB_ROUTER_TIES_ANY = 1
} plumb_router_ties;

/* Order of a token's experts   [8.1, 8.2] */
typedef enum plumb_router_order {
  PLUMB_ROUTER_ORDER_DESCENDING = 0, /* by descending score + bias */
  PLUMB_ROUTER_ORDER_ANY = 1         /* any order; weights[i] belongs to ids[i] */
} plumb_router_order;

/* Ids of hash_routing's table outside [0, experts)   [8.3] */
typedef enum plumb_strangers {
  PLUMB_STRANGERS_NEVER = 0,  /* the table has no such ids */
  PLUMB_STRANGERS_IGNORED = 1 /* their elements of weights and ids are not written */
} plumb_strangers;

/* The value of a weight   [8.2] */
typedef enum plumb_router_weight {
  PLUMB_WEIGHT_SCORE = 0,    /* the score itself */
  PLUMB_WEIGHT_RECOVERED = 1 /* (score + bias) - bias, with the rounding of the sum */
} plumb_router_weight;

/* V3.2: sigmoid scores; chooses the best groups by their two best experts, then the best experts
 * of these groups   [8.1] */
typedef struct plumb_grouped_topk_params {
  int64_t struct_size; /* of this structure, in bytes */
  const void* logits;  /* fp32 or bf16 [tokens, experts] */
  const float* bias;   /* fp32 [experts]: added for the choice, not in the weight */
  float* weights;      /* fp32 [tokens, topk] */
  int32_t* ids;        /* [tokens, topk] */
  int64_t tokens;
  int64_t logits_row_stride;
  int64_t experts;
  int64_t n_group; /* at most 32; divides experts into groups of two or more */
  int64_t topk_group;
  int64_t topk; /* at most 32, and at most the experts in topk_group groups */
  int64_t weights_row_stride, ids_row_stride;
  plumb_format logits_format; /* PLUMB_F32 or PLUMB_BF16 */
  plumb_router_arithmetic arithmetic;
  int32_t renormalize;
  float routed_scaling_factor;
  plumb_stream stream;
  plumb_router_nonfinite nonfinite;
  plumb_router_domain kernel_domain;
  plumb_router_bias bias_format;
  plumb_router_ties ties;
  plumb_router_order order;
} plumb_grouped_topk_params;

/* V4: square root of softplus, no groups   [8.2] */
typedef struct plumb_sqrt_softplus_topk_params {
  int64_t struct_size;           /* of this structure, in bytes */
  const void* logits;            /* fp32 or bf16 [tokens, experts] */
  const float* bias;             /* fp32 [experts] */
  const uint8_t* is_padding;     /* [tokens], optional; padding gets id -1, weight 0 */
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
  plumb_softplus softplus;
  plumb_softplus_small softplus_small;
  plumb_nan_score nan_score;
  plumb_zero_sum zero_sum;
  plumb_router_ties ties;
  plumb_router_order order;
} plumb_sqrt_softplus_topk_params;

/* V4, first layers: chooses experts by token id, with weights from the logits   [8.3] */
typedef struct plumb_hash_routing_params {
  int64_t struct_size;      /* of this structure, in bytes */
  const void* logits;       /* fp32 or bf16 [tokens, experts] */
  const int32_t* input_ids; /* [tokens]; legal ids, also for padding */
  const int32_t* tid2eid;   /* [vocabulary, topk] */
  float* weights;           /* fp32 [tokens, topk] */
  int32_t* ids;             /* [tokens, topk] */
  int64_t tokens;
  int64_t logits_row_stride;
  int64_t experts;
  int64_t topk; /* at most 32 */
  int64_t weights_row_stride, ids_row_stride;
  plumb_format logits_format;
  int32_t renormalize;
  float routed_scaling_factor;
  plumb_stream stream;
  plumb_softplus softplus;
  plumb_softplus_small softplus_small;
  plumb_nan_score nan_score;
  plumb_zero_sum zero_sum;
  plumb_strangers strangers;
} plumb_hash_routing_params;

#ifdef __cplusplus
}
#endif

#endif
