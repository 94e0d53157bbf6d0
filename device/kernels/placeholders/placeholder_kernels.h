/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in a decode step in place of parts that are no op of plumb's: projections and
 * experts (linear_map), embeddings and compressed states (seeded_rows), AITER's planner
 * (tile_plan); and what a framework brings along: filling a buffer (fill_rows), the keys of several
 * requests one behind the other for a prefill's indexer (gather_index_keys). They are called as ops
 * are, and are entries beside the ops in the table of plumb's own kernels. */
#ifndef PLUMB_PLACEHOLDER_KERNELS_H
#define PLUMB_PLACEHOLDER_KERNELS_H

#include <plumb/ops/cache.h>
#include <plumb/ops/sparse_mla.h>
#include <plumb/ops/types.h>
#include <stdint.h>

/* A linear map of each row, whose matrix is a pure function of a seed:
 *   out[t, j] = sum_{i < 4} sign_i in[t, column_i] / 2, column and sign from hash(seed, j, i).
 * Every output column adds up four input columns with signs, so that rows keep their magnitude, a
 * wrong row stays wrong and different columns differ. Each term is halved and added in fp32, in
 * order; one rounding to the output's format. */
typedef struct plumb_linear_map_params {
  const void* in; /* bf16 or fp32 [rows, in_columns] contiguous */
  void* out;      /* bf16 or fp32 [rows, out_columns] contiguous */
  int64_t rows, in_columns, out_columns;
  plumb_format in_format, out_format;
  uint64_t seed;
  plumb_stream stream;
} plumb_linear_map_params;

/* Rows that are a pure function of a key each, about normal with deviation 1 and exact in bf16:
 *   out[t, j] = (sum of the four 16-bit fields of hash(seed, keys[t], j) - 131070) / 2^15,
 * rounded to bf16. */
typedef struct plumb_seeded_rows_params {
  const int64_t* keys; /* [rows] */
  uint16_t* out;       /* bf16 [rows, columns] contiguous */
  int64_t rows, columns;
  uint64_t seed;
  plumb_stream stream;
} plumb_seeded_rows_params;

/* The tile plan of a ragged attention, made before it instead of by its first call   [1.6, 3.3].
 * An attention with this plan makes none. */
typedef struct plumb_tile_plan_params {
  const int32_t* indptr; /* [rows + 1]: row r has indptr[r + 1] - indptr[r] candidates */
  plumb_mla_plan plan;   /* filled */
  int64_t rows;
  plumb_stream stream;
} plumb_tile_plan_params;

/* Keys of requests out of the cache of indexer_k_quant_and_cache, not shuffled, one scale per key
 * [5.4]: key i of request r to row starts[r] + i. Rows of no request are kept. */
typedef struct plumb_gather_index_keys_params {
  plumb_paged_cache cache;    /* block_stride_bytes and page * dim multiples of 4 */
  const int32_t* block_table; /* [requests, block_table_row_stride] */
  const int32_t* starts;      /* [requests] */
  const int32_t* lens;        /* [requests] keys of each */
  uint8_t* k;                 /* fp8 [keys, dim] contiguous */
  float* k_scale;             /* [keys] */
  int64_t requests, keys, dim, block_table_row_stride;
  plumb_stream stream;
} plumb_gather_index_keys_params;

/* All bytes of rows := value. */
typedef struct plumb_fill_rows_params {
  uint8_t* out; /* [rows, row_bytes] contiguous */
  int64_t rows, row_bytes;
  uint8_t value;
  plumb_stream stream;
} plumb_fill_rows_params;

/* X(name) of each. */
#define PLUMB_FOR_EACH_PLACEHOLDER(X) \
  X(fill_rows) X(gather_index_keys) X(linear_map) X(seeded_rows) X(tile_plan)

#endif
