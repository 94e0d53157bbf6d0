// SPDX-License-Identifier: Apache-2.0
//
// Ragged lists: row r has entries [indptr[r], indptr[r + 1]) of a flat buffer. One block writes all
// of indptr. So the host counts nothing, and a replay uses the lengths of that replay.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kIndptrThreads = 256;
constexpr int kIndptrMostWaves = 8;  // a block of 256 in waves of 32
constexpr std::int32_t kNoIndex = -1;

// Integers only: nothing is rounded, so equal inputs give equal bits.
constexpr plumb_numerics kExactNumerics = {.product = PLUMB_F32,
                                           .accumulator = PLUMB_F32,
                                           .chains = 1,
                                           .probability = PLUMB_F32,
                                           .function_ulp = 0,
                                           .deterministic = 1,
                                           .stores_partials = 0};

// Sum of `value` over the lanes of a whole wave; every lane gets it.
PLUMB_DEVICE inline std::int32_t wave_sum(std::int32_t value) {
  for (int distance = wave_size() / 2; distance > 0; distance /= 2) {
    value += shuffle_xor(all_lanes(), value, distance, wave_size());
  }
  return value;
}

// Sum of `value` over this lane and all lower ones.
PLUMB_DEVICE inline std::int32_t wave_prefix_sum(std::int32_t value) {
  for (int distance = 1; distance < wave_size(); distance *= 2) {
    const bool inside = lane_index() >= distance;
    const int source = inside ? lane_index() - distance : lane_index();
    const std::int32_t other = shuffle(all_lanes(), value, source, wave_size());
    if (inside) value += other;
  }
  return value;
}

// Sum of `value` over all lower threads of the block. Contains one barrier.
PLUMB_DEVICE inline std::int32_t sum_in_front(std::int32_t value, std::int32_t* wave_sums) {
  const std::int32_t in_wave = wave_prefix_sum(value);
  if (lane_index() == wave_size() - 1) wave_sums[wave_index()] = in_wave;
  block_sync();
  std::int32_t in_front = in_wave - value;
  for (int wave = 0; wave < wave_index(); ++wave) in_front += wave_sums[wave];
  return in_front;
}

// indptr[0] = 0 and indptr[r + 1] = indptr[r] + length_of(r). The grid's only block computes it:
// thread t takes the t-th share of consecutive rows. Calls length_of twice for each row.
template <class LengthOf>
PLUMB_DEVICE inline void write_indptr(std::int64_t rows, const LengthOf& length_of,
                                      std::int32_t* indptr) {
  PLUMB_SHARED(std::int32_t, wave_sums, kIndptrMostWaves);
  const std::int64_t share = (rows + block_size() - 1) / block_size();
  const std::int64_t first = thread_index() * share < rows ? thread_index() * share : rows;
  const std::int64_t last = first + share < rows ? first + share : rows;
  std::int32_t own = 0;
  for (std::int64_t row = first; row < last; ++row) own += length_of(row);

  std::int32_t end = sum_in_front(own, wave_sums);
  if (thread_index() == 0) indptr[0] = 0;
  for (std::int64_t row = first; row < last; ++row) {
    end += length_of(row);
    indptr[row + 1] = end;
  }
}

// One block of whole waves, no more than one thread per row needs.
inline LaunchShape indptr_shape(std::int64_t rows, plumb_stream stream) {
  const int wave = stream_properties(stream).wave_size;
  const std::int64_t wanted = (rows + wave - 1) / wave * wave;
  const std::int64_t block = wanted < kIndptrThreads ? wanted : kIndptrThreads;
  return {1, 1, block < wave ? wave : static_cast<int>(block), 0};
}

// One block of whole waves per row, no more than one thread per column needs.
inline LaunchShape row_shape(std::int64_t rows, std::int64_t columns, plumb_stream stream) {
  const int wave = stream_properties(stream).wave_size;
  const std::int64_t wanted = (columns + wave - 1) / wave * wave;
  const std::int64_t block = wanted < 256 ? wanted : 256;
  return {rows, 1, block < wave ? wave : static_cast<int>(block), 0};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
