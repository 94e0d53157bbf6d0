/* SPDX-License-Identifier: Apache-2.0
 *
 * Top-k per row: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_TOP_K_H
#define PLUMB_OPS_TOP_K_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Row-local indices of the k largest logits of [row_starts, row_ends)   [4.1, 4.2] */
typedef struct plumb_top_k_per_row_prefill_params {
  const float* logits;       /* fp32 [num_rows, columns] */
  const int32_t* row_starts; /* [num_rows], columns of logits */
  const int32_t* row_ends;   /* [num_rows] */
  int32_t* indices;          /* [num_rows, k] contiguous; -1 behind min(k, length) */
  int64_t num_rows, columns;
  int64_t logits_row_stride, logits_column_stride;
  int32_t k;
  plumb_stream stream;
} plumb_top_k_per_row_prefill_params;

/* The same over [0, row_end), the ends derived from sequence lengths   [4.3] */
typedef struct plumb_top_k_per_row_decode_params {
  const float* logits;     /* fp32 [num_rows, columns] */
  const int32_t* seq_lens; /* [num_rows / next_n] if 1-D; [num_rows / next_n, next_n] if 2-D */
  int32_t* indices;        /* [num_rows, k] contiguous */
  int64_t num_rows, columns;
  int64_t logits_row_stride, logits_column_stride;
  int64_t seq_lens_row_stride; /* elements between requests */
  int32_t
      seq_lens_dims; /* 1: end = max(0, seq_len - next_n + row % next_n + 1); 2: the end itself */
  int32_t next_n;
  int32_t k;
  plumb_stream stream;
} plumb_top_k_per_row_decode_params;

#ifdef __cplusplus
}
#endif

#endif
