// SPDX-License-Identifier: Apache-2.0
//
// Errors with shared and global memory: bounds, initialisation, races, atomics.
#include "tests/must_fail/kernels.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr std::int32_t kSquares[] = {0, 1, 4, 9, 16, 25, 36, 49};

struct Pair {
  std::int32_t first;
  std::int64_t second;
};

PLUMB_DEVICE std::int32_t sum_of(const Pair& pair) {
  return pair.first + static_cast<std::int32_t>(pair.second);
}

}  // namespace

PLUMB_KERNEL void stray_write(std::int32_t* data, int n) { data[n] = 1; }

PLUMB_KERNEL void stray_read(std::int32_t* data, int n) { data[0] = data[n] + 1; }

// The access stays inside the allocation but is misaligned; n = 0 is right.
PLUMB_KERNEL void misaligned_load(std::int32_t* data, int n) {
  data[0] = load_vector(data + n).at[0];
}

PLUMB_KERNEL void misaligned_store(std::int32_t* data, int n) {
  store_vector(data + n, Vector<std::int32_t>{{5, 6, 7, 8}});
}

// Reads four words from data + n on.
PLUMB_KERNEL void vector_past_the_end(std::int32_t* data, int n) {
  data[0] = load_vector(data + n).at[0];
}

PLUMB_KERNEL void stray_shared_write(std::int32_t*, int n) {
  PLUMB_SHARED(std::int32_t, part, 16);
  part[n] = 1;
}

PLUMB_KERNEL void uninitialized_shared(std::int32_t* data, int) {
  PLUMB_SHARED(std::int32_t, part, 16);
  if (thread_index() < 8) part[thread_index()] = 0;
  block_sync();
  data[thread_index()] = part[thread_index()];
}

// Has 40,000 bytes of static shared memory, besides the dynamic part.
PLUMB_KERNEL void shared_too_large(std::int32_t* data, int) {
  PLUMB_SHARED(std::int32_t, large, 10000);
  large[thread_index()] = 0;
  data[thread_index()] = large[thread_index()];
}

PLUMB_DEVICE std::int32_t through_scratch(std::int32_t value) {
  PLUMB_SHARED(std::int32_t, scratch, 64);
  scratch[thread_index()] = value;
  block_sync();
  return scratch[(thread_index() + 1) % block_size()];
}

// Static arrays of the kernel and of a function that is called twice, and dynamic shared memory.
PLUMB_KERNEL void two_shared_arrays(std::int32_t* data, int) {
  PLUMB_SHARED(std::int32_t, part, 64);
  std::int32_t* const dynamic = dynamic_shared<std::int32_t>();
  part[thread_index()] = thread_index();
  dynamic[thread_index()] = 1000;
  const std::int32_t next = through_scratch(thread_index());
  block_sync();
  const std::int32_t after_next = through_scratch(next);
  data[thread_index()] = part[thread_index()] + dynamic[thread_index()] + 10000 * after_next;
}

// data[v] = number of threads whose squared index is v modulo n.
PLUMB_KERNEL void dynamic_histogram(std::int32_t* data, int n) {
  std::int32_t* const bins = dynamic_shared<std::int32_t>();
  if (thread_index() < n) bins[thread_index()] = 0;
  block_sync();
  atomic_add(&bins[(thread_index() * thread_index()) % n], 1);
  block_sync();
  if (thread_index() < n) data[thread_index()] = bins[thread_index()];
}

PLUMB_KERNEL void same_value(std::int32_t* data, int) { data[0] = 7; }

// Each block adds to one counter without an atomic.
PLUMB_KERNEL void block_race(std::int32_t* data, int) {
  if (thread_index() == 0) data[0] = data[0] + 1;
}

PLUMB_KERNEL void block_atomics(std::int32_t* data, int) {
  atomic_add(&data[0], 1);
  atomic_max(&data[1], block_index_x() * block_size() + thread_index());
  auto* const bits = reinterpret_cast<std::uint32_t*>(data);
  atomic_max(&bits[2], 0x80000000U + static_cast<std::uint32_t>(thread_index()));
  atomic_exchange(&data[3], 5);
}

// A plain read of an integer that other threads update.
PLUMB_KERNEL void mixed_atomics(std::int32_t* data, int) {
  atomic_add(&data[0], 1);
  if (thread_index() == 1) data[1] = data[0];
}

// Each thread writes its own bytes, in words that it shares with other threads.
PLUMB_KERNEL void neighbouring_bytes(std::int32_t* data, int n) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(data);
  auto* const halves = reinterpret_cast<std::uint16_t*>(data + n);
  bytes[thread_index()] = static_cast<std::uint8_t>(thread_index());
  halves[thread_index()] = static_cast<std::uint16_t>(thread_index());
}

PLUMB_KERNEL void read_then_write(std::int32_t* data, int) {
  const std::int32_t before = data[0];
  data[1 + thread_index()] = before;
  if (thread_index() == block_size() - 1) data[0] = before + 1;
}

// All threads read. Then the first wave meets, and its lane 0 writes while other waves may still
// read.
PLUMB_KERNEL void many_readers(std::int32_t* data, int n) {
  data[n + thread_index()] = data[0];
  if (wave_index() > 0) return;
  wave_sync(all_lanes());  // the first wave
  if (lane_index() == 0) data[0] = 1;
}

PLUMB_KERNEL void constant_table(std::int32_t* data, int) {
  data[thread_index()] = kSquares[thread_index() % 8];
}

PLUMB_KERNEL void struct_arguments(std::int32_t* data, int n) {
  const Pair pair{n, thread_index()};
  data[thread_index()] = sum_of(pair);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
