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

/* Format of the logits of both top_k_per_row ops. */
typedef enum plumb_logits_format {
  PLUMB_LOGITS_F32 = 0,
  PLUMB_LOGITS_BF16 = 1 /* compared as they are: they are not rounded */
} plumb_logits_format;

/* Row-local indices of the k largest logits of [row_starts, row_ends)   [4.1, 4.2] */
typedef struct plumb_top_k_per_row_prefill_params {
  int64_t struct_size;       /* of this structure, in bytes */
  const void* logits;        /* logits_format [rows, columns] */
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
  plumb_logits_format logits_format;
} plumb_top_k_per_row_prefill_params;

/* Row-local indices of the k largest logits of [0, row_end), with ends from sequence lengths
 * [4.3] */
typedef struct plumb_top_k_per_row_decode_params {
  int64_t struct_size;     /* of this structure, in bytes */
  const void* logits;      /* logits_format [rows, columns] */
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
  plumb_logits_format logits_format;
} plumb_top_k_per_row_decode_params;

/* What a block with a NaN is among the candidate blocks. */
typedef enum plumb_nan_block {
  PLUMB_NAN_BLOCK_DROPPED = 0, /* above +inf, all equal, and -1 stands for it in the result */
  PLUMB_NAN_BLOCK_TOP = 1,     /* above +inf, all equal */
  PLUMB_NAN_BLOCK_FORCED = 2,  /* equal to +inf */
  /* as if it had its other logits alone; a row with a block of NaN alone is as under UNSPECIFIED */
  PLUMB_NAN_BLOCK_IGNORED = 3,
  PLUMB_NAN_BLOCK_UNSPECIFIED = 4 /* a row with NaN may get any different blocks, or -1 */
} plumb_nan_block;

/* What stands for a block whose logits are all -inf. */
typedef enum plumb_dead_block {
  PLUMB_DEAD_BLOCK_MINUS_ONE = 0, /* -1: the block is no candidate */
  PLUMB_DEAD_BLOCK_INDEX = 1      /* its index, if fewer than topk_blocks blocks are better */
} plumb_dead_block;

/* If a row ends behind the columns: whether its newest block counts, which may have no column. */
typedef enum plumb_newest_block {
  PLUMB_NEWEST_IN_COLUMNS = 0, /* only if it has a column */
  PLUMB_NEWEST_IN_GRID = 1     /* also if its index is below ceil(columns / block_size) */
} plumb_newest_block;

/* Blocks of block_size columns with the largest logits, counted from row_starts. The score of a
 * block is the largest of its logits before min(row_ends, columns). The newest block, that of
 * column row_ends - 1, has the score +inf   [4.4] */
typedef struct plumb_select_candidate_blocks_params {
  int64_t struct_size;       /* of this structure, in bytes */
  const void* logits;        /* logits_format [rows, columns] */
  const int32_t* row_starts; /* [rows / row_repeat], columns of logits */
  const int32_t* row_ends;   /* [rows / row_repeat]; may be larger than columns */
  int32_t* blocks;           /* [rows, topk_blocks], in any order; -1: none, at any place */
  int64_t rows, columns;
  int64_t row_repeat; /* consecutive rows that share a start and an end */
  int64_t logits_row_stride;
  plumb_format logits_format; /* PLUMB_F32 or PLUMB_BF16 */
  int64_t topk_blocks, block_size;
  int64_t blocks_row_stride;
  plumb_nan_block nan_block;
  plumb_dead_block dead_block;
  plumb_newest_block newest;
  plumb_stream stream;
} plumb_select_candidate_blocks_params;

/* What a candidate block does that starts at or behind the columns. */
typedef enum plumb_candidate_edge {
  PLUMB_EDGE_IGNORE = 0,
  PLUMB_EDGE_KEEP_LAST = 1 /* keeps the last column, if the row reaches it */
} plumb_candidate_edge;

/* Writes -inf to all columns of a row that are outside [row_starts, row_ends) or in no candidate
 * block, and leaves the others as they are   [4.5] */
typedef struct plumb_mask_candidate_logits_params {
  int64_t struct_size;       /* of this structure, in bytes */
  void* logits;              /* logits_format [rows, columns], in place */
  const int32_t* row_starts; /* [rows / row_repeat], columns of logits */
  const int32_t* row_ends;   /* [rows / row_repeat]; may be larger than columns */
  const int32_t* blocks;     /* [rows, topk_blocks], in any order; -1: none */
  int64_t rows, columns;
  int64_t row_repeat; /* consecutive rows that share a start and an end */
  int64_t logits_row_stride;
  plumb_format logits_format; /* PLUMB_F32 or PLUMB_BF16 */
  int64_t topk_blocks, block_size;
  int64_t blocks_row_stride;
  plumb_candidate_edge edge;
  plumb_stream stream;
} plumb_mask_candidate_logits_params;

/* The sparse blocks of a row's candidate blocks in ascending order, as DeepGEMM's sparse logits
 * read them. Sparse block i has the columns from i * sparse_block_size +
 * row_starts % sparse_block_size on. Repeated candidates are repeated in the result   [4.7] */
typedef struct plumb_expand_candidate_blocks_params {
  int64_t struct_size;       /* of this structure, in bytes */
  const int32_t* blocks;     /* [rows, topk_blocks], counted from row_starts, in any order. Negative
                                blocks, and blocks that start at or behind row_ends, are skipped */
  const int32_t* row_starts; /* [rows], columns, not negative */
  const int32_t* row_ends;   /* [rows], columns; at or before the start: no block is valid */
  /* [rows, topk_blocks * block_size / sparse_block_size]. The last sparse block fills the places
   * behind the valid ones. A row without any has row_starts / sparse_block_size, rounded down */
  int32_t* sparse_blocks;
  int32_t* sparse_ends; /* [rows], columns of the sparse logits: those behind are not valid */
  int64_t rows;
  int64_t topk_blocks, block_size; /* block_size: columns of a candidate block */
  int64_t sparse_block_size;       /* columns of a sparse block, a divisor of block_size */
  int64_t blocks_row_stride;
  int64_t sparse_blocks_row_stride;
  plumb_stream stream;
} plumb_expand_candidate_blocks_params;

/* Positions of columns of the sparse logits, counted from row_starts. Column c belongs to the
 * sparse block at place c / sparse_block_size of the row   [4.8] */
typedef struct plumb_remap_candidate_positions_params {
  int64_t struct_size;          /* of this structure, in bytes */
  const int32_t* columns;       /* [rows, k]; outside [0, row_blocks * sparse_block_size): none */
  const int32_t* sparse_blocks; /* [rows, row_blocks] */
  const int32_t* row_starts;    /* [rows], columns, not negative */
  int32_t* positions;           /* [rows, k]; -1: none */
  int64_t rows, k;
  int64_t row_blocks;        /* sparse blocks per row */
  int64_t sparse_block_size; /* columns of a sparse block */
  int64_t columns_row_stride, sparse_blocks_row_stride;
  int64_t positions_row_stride;
  plumb_stream stream;
} plumb_remap_candidate_positions_params;

#ifdef __cplusplus
}
#endif

#endif
