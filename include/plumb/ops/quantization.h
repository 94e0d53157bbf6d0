/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantisation: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_QUANTIZATION_H
#define PLUMB_OPS_QUANTIZATION_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum plumb_quotient {
  PLUMB_DIVIDE = 0,                /* x / scale */
  PLUMB_MULTIPLY_BY_RECIPROCAL = 1 /* x * (1 / scale): the same bits if the scale is a power of 2 */
} plumb_quotient;

typedef enum plumb_scale_format {
  PLUMB_SCALE_F32 = 0,              /* fp32: amax / largest */
  PLUMB_SCALE_F32_POWER_OF_TWO = 1, /* fp32: amax / largest rounded up to a power of two */
  PLUMB_SCALE_PACKED_UE8M0 = 2 /* that power of two as a UE8M0 byte; four consecutive groups in an
                                  int32, the first in the low byte */
} plumb_scale_format;

/* Content of the bytes after the last group in the last int32 of packed scales. */
typedef enum plumb_filler {
  PLUMB_FILLER_0 = 0,
  PLUMB_FILLER_94 = 1,  /* as for a group of zeros with a floor of 1e-10 */
  PLUMB_FILLER_127 = 2, /* as for a scale of 1 */
  PLUMB_FILLER_ANY = 3
} plumb_filler;

/* Content of column-major packed scales between the last token and the next multiple of 4, except
 * after the last column. */
typedef enum plumb_padding_rows {
  PLUMB_PADDING_ROWS_UNTOUCHED = 0,
  PLUMB_PADDING_ROWS_ZERO = 1
} plumb_padding_rows;

/* Rounding of a number halfway between two codes. */
typedef enum plumb_ties {
  PLUMB_TIES_TO_EVEN = 0,     /* as in hardware conversion to e2m1 */
  PLUMB_TIES_TOWARD_ZERO = 1, /* as by counting the boundaries below |x| */
  PLUMB_TIES_AWAY = 2         /* away from zero, as by adding half a unit to the bits of |x| */
} plumb_ties;

/* Code of -0, and of a negative number that is rounded to zero. */
typedef enum plumb_negative_zero {
  PLUMB_NEGATIVE_ZERO_KEPT = 0,   /* code 8 */
  PLUMB_NEGATIVE_ZERO_DROPPED = 1 /* code 0 */
} plumb_negative_zero;

/* Scale of a group of MXFP4, from a = max(amax, amax_floor). With RCEIL no code saturates. With
 * EVEN and FLOOR, numbers above 6 scales saturate. */
typedef enum plumb_mx_scale_rule {
  PLUMB_MX_SCALE_RCEIL = 0, /* a / 6 rounded up to a power of two; at least 2^-126 */
  PLUMB_MX_SCALE_EVEN = 1,  /* a / 4, with its mantissa rounded to one bit first: equal to a / 3.5
                               rounded down to a power of two; at least 2^-127 */
  PLUMB_MX_SCALE_FLOOR = 2  /* a / 4 rounded down to a power of two; at least 2^-127 */
} plumb_mx_scale_rule;

/* Codes and scales of groups of consecutive columns   [9.3]
 *   amax = max(max |x|, amax_floor), scale = max(amax / largest, scale_floor), q = fp8(x / scale)
 * largest is 448 for e4m3fn and 224 for e4m3fnuz; one of the floors is above 0. The last group may
 * be shorter; its missing columns get the code 0. */
typedef struct plumb_per_token_group_quant_fp8_params {
  int64_t struct_size; /* of this structure, in bytes */
  const uint16_t* x;   /* bf16 [tokens, columns] */
  uint8_t* q;          /* [tokens, groups * group_size], groups = ceil(columns / group_size) */
  void* scales;        /* fp32 [tokens, groups] or int32 [tokens, ceil(groups / 4)] */
  int64_t tokens, columns, group_size;
  int64_t x_row_stride, q_row_stride;
  /* Row-major: (groups, 1). Column-major, aligned for TMA: (1, tokens rounded up to 4). */
  int64_t scales_token_stride, scales_group_stride;
  plumb_format dialect; /* PLUMB_E4M3FN or PLUMB_E4M3FNUZ */
  plumb_scale_format scale_format;
  plumb_quotient quotient;
  float amax_floor, scale_floor;
  plumb_stream stream;
  plumb_filler filler;
  plumb_padding_rows padding_rows;
} plumb_per_token_group_quant_fp8_params;

/* E2M1 codes and UE8M0 scales of groups of 32 columns   [9.4] */
typedef struct plumb_mxfp4_quant_params {
  int64_t struct_size; /* of this structure, in bytes */
  const uint16_t* x;   /* bf16 [tokens, columns], columns a multiple of 32 */
  uint8_t* q;          /* [tokens, columns / 2]: the even column in the low nibble */
  uint8_t* scales;     /* UE8M0 [tokens, columns / 32] */
  int64_t tokens, columns;
  int64_t x_row_stride;
  int64_t q_row_stride, scales_row_stride;
  float amax_floor; /* > 0 */
  plumb_ties ties;
  plumb_negative_zero negative_zero;
  plumb_stream stream;
  plumb_mx_scale_rule scale_rule;
} plumb_mxfp4_quant_params;

/* Converts OCP weights for fnuz hardware [9.5]: byte 0x80 becomes 0x00, and scales are doubled.
 * Outputs may be the inputs. */
typedef struct plumb_normalize_e4m3fn_to_e4m3fnuz_params {
  int64_t struct_size;   /* of this structure, in bytes */
  const uint8_t* weight; /* [rows, columns] */
  uint8_t* weight_out;
  const float* weight_scale; /* [weight_scales] */
  float* weight_scale_out;
  const float* input_scale; /* [input_scales]; optional, as is its output */
  float* input_scale_out;
  int64_t rows, columns, weight_row_stride;
  int64_t weight_scales, input_scales;
  int64_t weight_out_row_stride;
  plumb_stream stream;
} plumb_normalize_e4m3fn_to_e4m3fnuz_params;

#ifdef __cplusplus
}
#endif

#endif
