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
  PLUMB_ROUTER_FP32 = 0, /* fp32 throughout */
  /* the logits' own: the score, the bias and both sums are rounded to it, the weights are made of
     the rounded score */
  PLUMB_ROUTER_LOGITS_FORMAT = 1,
  /* the same, and in the score tanh(x / 2) / 2 + 1/2 the tanh is rounded, too */
  PLUMB_ROUTER_LOGITS_FORMAT_TANH = 2
} plumb_router_arithmetic;

/* What a logit that is not finite does   [8.1]. Unless all are guarded, a row with a NaN may get
 * any experts and any weights. */
typedef enum plumb_router_nonfinite {
  PLUMB_NONFINITE_ORDERED_BITS = 0, /* what arithmetic gives: the score of +infinity is 1, that of
                                       -infinity 0 */
  /* group scores and weights as above, but such an expert is not chosen; places for which the kept
     groups have no finite logit left hold any expert */
  PLUMB_NONFINITE_GUARD_CHOICE_ONLY = 1,
  /* the choice is -infinity and the score 0, also in group scores; a row with fewer than topk_group
     groups above -infinity gets experts 0 .. topk-1 with the weight 1/topk, unscaled */
  PLUMB_NONFINITE_GUARD_ALL = 2
} plumb_router_nonfinite;

/* For which shapes `arithmetic` and `nonfinite` hold   [8.1] */
typedef enum plumb_router_domain {
  PLUMB_DOMAIN_EVERYWHERE = 0,
  /* not for those of vLLM's small-expert kernel, which has fp32 and ordered bits: one group, up to
     512 experts, topk up to 8 (or 22), or up to 256 experts in groups of up to 32, of which up to 4
     are kept, topk up to 8 */
  PLUMB_DOMAIN_SMALL_EXPERTS_IN_FP32 = 1
} plumb_router_domain;

/* The bias before it is added. Unless the arithmetic is PLUMB_ROUTER_FP32 it is always
 * rounded. */
typedef enum plumb_router_bias {
  PLUMB_BIAS_FP32 = 0,
  PLUMB_BIAS_LOGITS_FORMAT = 1 /* rounded to the format of the logits */
} plumb_router_bias;

/* ln(1 + e^x)   [8.2] */
typedef enum plumb_softplus {
  PLUMB_SOFTPLUS_THRESHOLD_20 = 0, /* above 20 it is x */
  PLUMB_SOFTPLUS_NONE = 1          /* above 88.7 e^x, and with it the score, is infinite */
} plumb_softplus;

/* The same for negative x. */
typedef enum plumb_softplus_small {
  PLUMB_SOFTPLUS_LOG_1P_EXP = 0, /* the sum is rounded: below -16.64 the score is exactly 0 */
  PLUMB_SOFTPLUS_LOG1P = 1       /* keeps e^x */
} plumb_softplus_small;

/* The score of a NaN logit   [8.2, 8.3] */
typedef enum plumb_nan_score {
  PLUMB_NAN_SCORE_ZERO = 0, /* 0; sqrt_softplus_topk chooses it last, or like a score of 0 */
  PLUMB_NAN_SCORE_NAN = 1   /* NaN; of sqrt_softplus_topk the row may get any experts and weights */
} plumb_nan_score;

/* By what weights are divided where the sum of scores is not above 0   [8.2, 8.3] */
typedef enum plumb_zero_sum {
  PLUMB_ZERO_SUM_ONE = 0,    /* by 1 */
  PLUMB_ZERO_SUM_NAN = 1,    /* by the sum: they are NaN */
  PLUMB_ZERO_SUM_EPSILON = 2 /* by the sum + 1e-20, also where the sum is above 0 */
} plumb_zero_sum;

/* Which of several experts, or of several groups, with equal scores is chosen   [8.1, 8.2] */
typedef enum plumb_router_ties {
  PLUMB_ROUTER_TIES_LOWER_ID = 0,
  PLUMB_ROUTER_TIES_ANY = 1
} plumb_router_ties;

/* In which order a token's experts stand   [8.1, 8.2] */
typedef enum plumb_router_order {
  PLUMB_ROUTER_ORDER_DESCENDING = 0, /* of score + bias */
  PLUMB_ROUTER_ORDER_ANY = 1         /* weights[i] belongs to ids[i] */
} plumb_router_order;

/* Ids of hash_routing's table that are no experts   [8.3] */
typedef enum plumb_strangers {
  PLUMB_STRANGERS_NEVER = 0,  /* the table has none */
  PLUMB_STRANGERS_IGNORED = 1 /* their places in weights and ids stay untouched */
} plumb_strangers;

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
  int32_t* ids;        /* [tokens, topk] */
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
  plumb_softplus softplus;
  plumb_softplus_small softplus_small;
  plumb_nan_score nan_score;
  plumb_zero_sum zero_sum;
  plumb_router_ties ties;
  plumb_router_order order;
} plumb_sqrt_softplus_topk_params;

/* V4, first layers: experts by token id, weights by the logits   [8.3] */
typedef struct plumb_hash_routing_params {
  int64_t struct_size;      /* of this structure, in bytes */
  const void* logits;       /* fp32 or bf16 [tokens, experts] */
  const int32_t* input_ids; /* [tokens]; of padding too, a legal one */
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
