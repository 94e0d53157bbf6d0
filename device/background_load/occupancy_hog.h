/* SPDX-License-Identifier: Apache-2.0
 *
 * A neighbour for concurrent cases: blocks that take all shared memory of a multiprocessor and keep
 * it for a while. Its result is known: it has to be right too. */
#ifndef PLUMB_OCCUPANCY_HOG_H
#define PLUMB_OCCUPANCY_HOG_H

#include <plumb/ops/types.h>
#include <stdint.h>

/* data [blocks * 64]: each block's elements move on by one place and become 1664525 x + 1013904223,
 * `rounds` times. */
typedef struct plumb_occupancy_hog_params {
  uint32_t* data;
  int32_t blocks;
  int32_t rounds;
  plumb_stream stream;
} plumb_occupancy_hog_params;

#endif
