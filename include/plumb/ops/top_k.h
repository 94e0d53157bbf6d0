/* SPDX-License-Identifier: Apache-2.0
 *
 * Top-k per row: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_TOP_K_H
#define PLUMB_OPS_TOP_K_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Position of NaN in the order of logits. */
typedef enum plumb_nan_order {
  PLUMB_NAN_ALL_TOP = 0,      /* above +inf, all equal */
  PLUMB_NAN_SIGN_ORDERED = 1, /* by bits: +NaN above +inf, -NaN below -inf */
  PLUMB_NAN_UNSPECIFIED = 2 /* a row with NaN may get any different indices of its window, or -1 */
} plumb_nan_order;

/* Position of -0 in the order of logits. */
typedef enum plumb_zero_order {
  PLUMB_ZEROS_BY_SIGN = 0, /* below +0, as by bits */
  PLUMB_ZEROS_EQUAL = 1    /* equal to +0, as numbers compare (torch.topk) */
} plumb_zero_order;

/* Row-local indices of the k largest logits of [row_starts, row_ends)   [4.1, 4.2] */
typedef struct plumb_top_k_per_row_prefill_params {
  int64_t struct_size;       /* of this structure, in bytes */
  const float* logits;       /* fp32 [rows, columns] */
  const int32_t* row_starts; /* [rows], columns of logits */
  const int32_t* row_ends;   /* [rows] */
  int32_t* indices;          /* [rows, k]; -1 after the first min(k, length) */
  int64_t rows, columns;
  int64_t logits_row_stride, logits_column_stride;
  int64_t k;
  int64_t indices_row_stride;
  plumb_stream stream;
  plumb_nan_order nan_order;
  plumb_zero_order zeros;
} plumb_top_k_per_row_prefill_params;

/* Row-local indices of the k largest logits of [0, row_end), with ends from sequence lengths
 * [4.3] */
typedef struct plumb_top_k_per_row_decode_params {
  int64_t struct_size;     /* of this structure, in bytes */
  const float* logits;     /* fp32 [rows, columns] */
  const int32_t* seq_lens; /* [rows / next_n] if 1-D; [rows / next_n, next_n] if 2-D */
  int32_t* indices;        /* [rows, k] */
  int64_t rows, columns;
  int64_t logits_row_stride, logits_column_stride;
  int64_t seq_lens_row_stride; /* elements between requests */
  int32_t
      seq_lens_dims; /* 1: end = max(0, seq_len - next_n + row % next_n + 1); 2: the end itself */
  int64_t next_n;
  int64_t k;
  int64_t indices_row_stride;
  plumb_stream stream;
  plumb_nan_order nan_order;
  plumb_zero_order zeros;
} plumb_top_k_per_row_decode_params;

#ifdef __cplusplus
}
#endif

#endif
