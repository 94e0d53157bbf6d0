/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that stand in a decode step for parts of a model that are not ops of plumb: projections
 * and experts (linear_map), embeddings (seeded_rows). fill_rows does what a framework does: it
 * fills a buffer. They are called like ops, and the table of plumb's own kernels has an entry for
 * each. */
#ifndef PLUMB_PLACEHOLDER_KERNELS_H
#define PLUMB_PLACEHOLDER_KERNELS_H

#include <plumb/ops/types.h>
#include <stdint.h>

/* A linear map of each row, whose matrix is a pure function of a seed:
 *   out[t, j] = sum_{i < 4} sign_i in[t, column_i] / 2, column and sign from hash(seed, j, i).
 * An output column is the signed sum of four input columns. So rows keep their magnitude, a wrong
 * row stays wrong, and different columns differ. Terms are halved and added in order in fp32, and
 * the sum is rounded once, to the output's format. */
typedef struct plumb_linear_map_params {
  const void* in; /* bf16 or fp32 [rows, in_columns] contiguous */
  void* out;      /* bf16 or fp32 [rows, out_columns] contiguous */
  int64_t rows, in_columns, out_columns;
  plumb_format in_format, out_format;
  uint64_t seed;
  plumb_stream stream;
} plumb_linear_map_params;

/* Each row is a pure function of its key. Elements are about normal with deviation 1.15:
 *   out[t, j] = (sum of the four 16-bit fields of hash(seed, keys[t], j) - 131070) / 2^15,
 * rounded to bf16. */
typedef struct plumb_seeded_rows_params {
  const int64_t* keys; /* [rows] */
  uint16_t* out;       /* bf16 [rows, columns] contiguous */
  int64_t rows, columns;
  uint64_t seed;
  plumb_stream stream;
} plumb_seeded_rows_params;

/* Sets all bytes of the rows to `value`. */
typedef struct plumb_fill_rows_params {
  uint8_t* out; /* [rows, row_bytes] contiguous */
  int64_t rows, row_bytes;
  uint8_t value;
  plumb_stream stream;
} plumb_fill_rows_params;

/* X(name) for each of these kernels. */
#define PLUMB_FOR_EACH_PLACEHOLDER(X) X(fill_rows) X(linear_map) X(seeded_rows)

#endif
