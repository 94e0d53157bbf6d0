/* SPDX-License-Identifier: Apache-2.0
 *
 * Background load for concurrent cases: each block takes all shared memory of a multiprocessor for
 * a while, so that other kernels must wait for a free one. Its result is known, and checked too. */
#ifndef PLUMB_OCCUPANCY_HOG_H
#define PLUMB_OCCUPANCY_HOG_H

#include <plumb/ops/types.h>
#include <stdint.h>

/* data [blocks * 64]: in each of `rounds` rounds, element i of a block becomes
 * 1664525 x + 1013904223, where x is element (i + 1) % 64 of the same block. */
typedef struct plumb_occupancy_hog_params {
  uint32_t* data;
  int32_t blocks;
  int32_t rounds;
  plumb_stream stream;
} plumb_occupancy_hog_params;

#endif
