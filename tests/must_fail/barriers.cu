// SPDX-License-Identifier: Apache-2.0
//
// Errors with block_sync: missing, divergent, never completed. One block unless a kernel says
// otherwise.
#include <stdexcept>

#include "tests/must_fail/kernels.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// data[i] = the next thread's number, which may not be written yet.
PLUMB_KERNEL void missing_barrier(std::int32_t* data, int n) {
  PLUMB_SHARED(std::int32_t, part, 1024);
  part[thread_index()] = -1;
  block_sync();  // the only one
  part[thread_index()] = thread_index();
  data[thread_index()] = part[(thread_index() + 1) % n];
}

PLUMB_KERNEL void present_barrier(std::int32_t* data, int n) {
  PLUMB_SHARED(std::int32_t, part, 1024);
  part[thread_index()] = -1;
  block_sync();
  part[thread_index()] = thread_index();
  block_sync();  // needed
  data[thread_index()] = part[(thread_index() + 1) % n];
}

PLUMB_KERNEL void divergent_barrier(std::int32_t* data, int) {
  if (thread_index() == 5) {
    block_sync();  // divergent: thread 5
    data[0] = 1;
  } else {
    block_sync();  // divergent: the others
  }
}

PLUMB_KERNEL void barrier_against_wave(std::int32_t*, int) {
  if (thread_index() == 5)
    block_sync();  // deadlock: thread 5
  else
    wave_sync(all_lanes());  // deadlock: the others
}

// Threads from n on return; the others still meet, twice.
PLUMB_KERNEL void early_exit(std::int32_t* data, int n) {
  PLUMB_SHARED(std::int32_t, part, 1024);
  if (thread_index() >= n) return;
  part[thread_index()] = thread_index();
  block_sync();
  const std::int32_t neighbour = part[(thread_index() + 1) % n];
  block_sync();
  part[thread_index()] = neighbour;
  data[thread_index()] = part[thread_index()];
}

PLUMB_KERNEL void many_barriers(std::int32_t*, int n) {
  for (int i = 0; i < n; ++i) block_sync();
}

PLUMB_KERNEL void count_blocks(std::int32_t* data, int) {
  if (thread_index() == 0) ++data[block_index_x() + block_index_y() * grid_size_x()];
}

PLUMB_KERNEL void nothing(std::int32_t*, int) {}

PLUMB_KERNEL void throwing(std::int32_t*, int n) {
  block_sync();
  if (thread_index() == n) throw std::runtime_error("from a kernel");
  block_sync();
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
