/* SPDX-License-Identifier: Apache-2.0
 *
 * Types in the parameters of all ops: stream, status, formats, rounding, numerics. */
#ifndef PLUMB_OPS_TYPES_H
#define PLUMB_OPS_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void* plumb_stream;

typedef enum plumb_status {
  PLUMB_OK = 0,
  PLUMB_INVALID_ARGUMENT = 1, /* the op's contract forbids a shape, stride or pointer */
  PLUMB_UNSUPPORTED = 2,      /* legal, but not implemented: the case is skipped */
  PLUMB_LAUNCH_FAILED = 3
} plumb_status;

typedef enum plumb_format {
  PLUMB_F64 = 0,
  PLUMB_F32 = 1,
  PLUMB_TF32 = 2,           /* fp32 operands rounded to nearest 10-bit mantissas */
  PLUMB_TF32_TRUNCATED = 3, /* fp32 operands whose low 13 bits the hardware drops */
  PLUMB_BF16 = 4,
  PLUMB_E4M3FN = 5,
  PLUMB_E4M3FNUZ = 6
} plumb_format;

typedef enum plumb_rounding {
  PLUMB_ROUND_ONCE = 0,  /* fp32 throughout, one rounding at the store ("new") */
  PLUMB_ROUND_TWICE = 1, /* the normalised value is rounded to bf16 first ("old") */
  /* as TWICE, and 1 / sqrt(mean(x^2) + eps) is rounded to bf16 too: q_head_rms_norm_rope only */
  PLUMB_ROUND_FACTOR = 2
} plumb_rounding;

/* Where a factor of a matrix product is applied. */
typedef enum plumb_scaled {
  PLUMB_SCALED_PRODUCT = 0, /* to the product's result */
  PLUMB_SCALED_OPERAND = 1  /* to one operand, which is then rounded */
} plumb_scaled;

/* Order in which the top-k ops write the indices of a row longer than k. Indices of shorter rows
 * ascend by contract. Indices always count from the start of the row's window. */
typedef enum plumb_index_order {
  PLUMB_INDICES_ANY_ORDER = 0, /* may change between launches: judged and compared as a set */
  PLUMB_INDICES_OWN_ORDER = 1, /* any order that is the same in every launch */
  PLUMB_INDICES_ASCENDING = 2,
  PLUMB_INDICES_BY_KEY = 3 /* largest key first; equal keys in any order */
} plumb_index_order;

/* Which of several equal keys the top-k ops take if there is no room for all of them. */
typedef enum plumb_equal_keys {
  PLUMB_EQUAL_KEYS_ANY = 0, /* may change between launches */
  PLUMB_EQUAL_KEYS_REPEATED = 1,
  PLUMB_EQUAL_KEYS_LOWEST_INDEX = 2
} plumb_equal_keys;

/* The unit that adds up the op's long products. docs/plugins.md says which kernels use which
 * unit. */
typedef enum plumb_sum_unit {
  PLUMB_UNIT_FP32 = 0,      /* every addition rounds to nearest in the accumulator's format */
  PLUMB_UNIT_SM90_BF16 = 1, /* bf16, fp16 and tf32 instructions of sm90 */
  PLUMB_UNIT_SM90_FP8 = 2,  /* wgmma of sm90 on fp8 */
  PLUMB_UNIT_24_BITS = 3    /* terms are aligned to the largest and truncated to 24 bits */
} plumb_sum_unit;

/* What an implementation of one op promises about its arithmetic. Bounds are derived from it.
 * In the members from `deterministic` to `equal_keys`, 0 promises nothing, and every promise is
 * checked. */
typedef struct plumb_numerics {
  int64_t struct_size;      /* of this structure, in bytes */
  plumb_format product;     /* format of the operands of the op's long products */
  plumb_format accumulator; /* format of the running sums */
  int32_t chains; /* parallel partial sums in a reduction, each sequential, then combined by a tree;
                     1 = one sequential sum */
  plumb_format probability; /* attention: format of p in the PV product */
  float function_ulp;       /* error of exp2, log2, rsqrt, sigmoid and division, in fp32 ulp */
  int32_t deterministic; /* 1: equal inputs give equal bits in every run; top-k indices only as far
                            as index_order and equal_keys fix them */
  int32_t stores_partials; /* 1: writes the op's visible intermediates (named in its struct) */
  plumb_index_order index_order; /* top-k ops only, like equal_keys */
  plumb_equal_keys equal_keys;
  int32_t unused; /* padding of the first version: ignored */
  plumb_sum_unit sum_unit;
  int32_t sum_step;   /* products that the unit adds per instruction; 0 = 16, or 32 for fp8 */
  plumb_format score; /* sparse_mla_prefill in separate steps: format in which these store scores,
                         and p after its division by the sum; F64 (0) or F32 = in one kernel */
} plumb_numerics;

#ifdef __cplusplus
}
#endif

#endif
