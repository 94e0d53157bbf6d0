/* SPDX-License-Identifier: Apache-2.0
 *
 * The lightning indexer: parameters of its ops. Conventions are those of plumb_ops.h. */
#ifndef PLUMB_OPS_INDEXER_H
#define PLUMB_OPS_INDEXER_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* logits[m,n] = k_scale[n] * sum_h weights[m,h] * max(0, q[m,h,:] . k[n,:])   [5.1, 5.2]
 * for the keys n in [starts[m], ends[m]), both clamped to [0, keys]. */
typedef struct plumb_fp8_mqa_logits_params {
  const uint8_t* q;      /* fp8 [rows, heads, dim] contiguous */
  const uint8_t* k;      /* fp8 [keys, dim] contiguous */
  const float* k_scale;  /* [keys], positive */
  const float* weights;  /* [rows, heads] */
  const int32_t* starts; /* [rows] */
  const int32_t* ends;   /* [rows]; not behind its start: no keys */
  float* logits;         /* [rows, keys], or [rows, max_seqlen_k] if that is above 0 */
  int64_t rows, keys;
  int64_t logits_row_stride; /* what lies between two rows may be written */
  int32_t heads, dim;
  int32_t max_seqlen_k; /* above 0: column c is key start + c; needs clean_logits 0 */
  int32_t clean_logits; /* 1: columns without a key of the row are -inf; 0: they hold anything */
  plumb_format q_dialect, k_dialect; /* PLUMB_E4M3FN or PLUMB_E4M3FNUZ */
  plumb_stream stream;
} plumb_fp8_mqa_logits_params;

typedef enum plumb_indexer_layout {
  PLUMB_INDEXER_PLANAR = 0,  /* values of a block: [page, dim] */
  PLUMB_INDEXER_SHUFFLED = 1 /* [page / 16, dim / 16, 16 tokens, 16 dims] */
} plumb_indexer_layout;

/* A paged cache of indexer keys. A block holds the fp8 values of all its tokens, then one fp32
 * scale for each of them: page * (dim + 4) bytes. */
typedef struct plumb_indexer_cache {
  const uint8_t* data;
  int64_t block_stride_bytes; /* multiple of 4 */
  int64_t num_blocks;
  int32_t page;
  plumb_indexer_layout layout;
  plumb_format dialect;
} plumb_indexer_cache;

/* The same over the tokens of a request, next_n query rows per request   [5.1, 5.3] */
typedef struct plumb_fp8_paged_mqa_logits_params {
  const uint8_t* q; /* fp8 [requests, next_n, heads, dim] contiguous */
  plumb_indexer_cache cache;
  const float* weights;        /* [requests * next_n, heads] */
  const int32_t* context_lens; /* [requests] if 1-D; [requests, next_n] if 2-D */
  const int32_t* block_table;  /* [requests, block_table_stride]; the entries that a request's
                                  tokens need are blocks, the others anything */
  float* logits;               /* [requests * next_n, max_context_len] */
  int64_t requests, max_context_len;
  int64_t logits_row_stride;                       /* what lies between two rows may be written */
  int64_t context_lens_stride, block_table_stride; /* elements between requests */
  int32_t context_lens_dims; /* 1: length = max(0, len - next_n + i + 1); 2: the length itself */
  int32_t next_n, heads, dim;
  int32_t clean_logits; /* 1: columns from the length on are -inf, for 1-D lengths only; 0: they
                           hold anything */
  plumb_format q_dialect;
  plumb_stream stream;
} plumb_fp8_paged_mqa_logits_params;

#ifdef __cplusplus
}
#endif

#endif
