// SPDX-License-Identifier: Apache-2.0
//
// Radix select of one row by one block, for the top_k_per_row kernels. Three histogram passes over
// digits of 11, 11 and 10 bits find the k-th largest key exactly; one more pass writes the winners.
// No candidate list is kept, so no number of equal keys can overflow one.
//
// Threads to data: thread t visits columns t, t + block_size, ... and owns consecutive histogram
// bins. Legal launch: any block of up to 1024 threads, waves of 32 or 64, a last wave in part.
//
// Placement is by prefix sums, never by arrival: winners in ascending column order, of equal keys
// at the threshold the first ones. The result is the same bits for every thread order and block
// size.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kTopKBins = 2048;     // 11 bits
constexpr int kTopKMostWaves = 32;  // 1024 threads in waves of 32
constexpr std::int32_t kTopKNoIndex = -1;

// Nothing is rounded: logits are only compared.
constexpr plumb_numerics kTopKNumerics = {.product = PLUMB_F32,
                                          .accumulator = PLUMB_F32,
                                          .chains = 1,
                                          .probability = PLUMB_F32,
                                          .function_ulp = 0,
                                          .deterministic = 1,
                                          .stores_partials = 0,
                                          .index_order = PLUMB_INDICES_ASCENDING,
                                          .equal_keys = PLUMB_EQUAL_KEYS_LOWEST_INDEX};

// The logits that a row may look at; local index i is first[i * column_stride].
struct TopKWindow {
  const float* first;
  std::int64_t column_stride;
  std::int64_t length;
};

struct TopKShared {
  std::uint32_t histogram[kTopKBins];
  std::uint32_t wave_sums[kTopKMostWaves];
  std::uint32_t winners[2][kTopKMostWaves];  // by wave; two buffers, so that one barrier is enough
  std::uint32_t digit, wanted;
};

// Keys of which the digits under `mask` are known: those of the k-th largest are `digits`, and of
// the keys that agree with it so far, `wanted` belong to the k largest.
struct TopKThreshold {
  std::uint32_t digits, mask, wanted;
};

// -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN, as unsigned numbers.
PLUMB_DEVICE inline std::uint32_t top_k_key(const TopKWindow& window, std::int64_t column) {
  const std::uint32_t bits = float_bits(window.first[column * window.column_stride]);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Sums of neighbouring bits, pairs and nibbles, then of all bytes at the top.
PLUMB_DEVICE inline int lane_count(LaneMask lanes) {
  std::uint64_t sums = lanes - (lanes >> 1 & 0x5555555555555555u);
  sums = (sums & 0x3333333333333333u) + (sums >> 2 & 0x3333333333333333u);
  sums = (sums + (sums >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return static_cast<int>(sums * 0x0101010101010101u >> 56);
}

// Sum of `value` over this thread and the threads of the wave behind it.
PLUMB_DEVICE inline std::uint32_t wave_suffix_sum(std::uint32_t value) {
  const int lanes = lane_count(all_lanes());
  for (int distance = 1; distance < lanes; distance *= 2) {
    const int source = lane_index() + distance;
    const bool inside = source < lanes;
    const std::uint32_t other =
        shuffle(all_lanes(), value, inside ? source : lane_index(), wave_size());
    if (inside) value += other;
  }
  return value;
}

// Sum of `value` over the threads of the block behind this one. Contains one barrier.
PLUMB_DEVICE inline std::uint32_t sum_behind(std::uint32_t value, TopKShared* shared) {
  const std::uint32_t in_wave = wave_suffix_sum(value);
  if (lane_index() == 0) shared->wave_sums[wave_index()] = in_wave;
  block_sync();
  std::uint32_t behind = in_wave - value;
  const int waves = (block_size() + wave_size() - 1) / wave_size();
  for (int wave = wave_index() + 1; wave < waves; ++wave) behind += shared->wave_sums[wave];
  return behind;
}

// Counts the digit at `shift` of every key that is still in question.
PLUMB_DEVICE inline void count_digits(const TopKWindow& window, const TopKThreshold& threshold,
                                      int shift, int bins, TopKShared* shared) {
  for (int bin = thread_index(); bin < kTopKBins; bin += block_size()) shared->histogram[bin] = 0;
  block_sync();
  for (std::int64_t column = thread_index(); column < window.length; column += block_size()) {
    const std::uint32_t key = top_k_key(window, column);
    const bool in_question = (key & threshold.mask) == threshold.digits;
    if (in_question) atomic_add(&shared->histogram[key >> shift & (bins - 1)], 1u);
  }
  block_sync();
}

// Finds the bin that holds the wanted-th largest of the counted keys: one thread finds it among its
// own bins and tells the others.
PLUMB_DEVICE inline void find_digit(std::uint32_t wanted, TopKShared* shared) {
  const int bins_per_thread = (kTopKBins + block_size() - 1) / block_size();
  const int first = thread_index() * bins_per_thread;
  const int last = first + bins_per_thread < kTopKBins ? first + bins_per_thread : kTopKBins;
  std::uint32_t own = 0;
  for (int bin = first; bin < last; ++bin) own += shared->histogram[bin];

  std::uint32_t larger = sum_behind(own, shared);
  for (int bin = last - 1; bin >= first; --bin) {
    const std::uint32_t count = shared->histogram[bin];
    if (larger < wanted && wanted <= larger + count) {
      shared->digit = static_cast<std::uint32_t>(bin);
      shared->wanted = wanted - larger;
    }
    larger += count;
  }
  block_sync();
}

PLUMB_DEVICE inline void narrow(const TopKWindow& window, int shift, int bits,
                                TopKThreshold* threshold, TopKShared* shared) {
  const int bins = 1 << bits;
  count_digits(window, *threshold, shift, bins, shared);
  find_digit(threshold->wanted, shared);
  threshold->digits |= shared->digit << shift;
  threshold->mask |= static_cast<std::uint32_t>(bins - 1) << shift;
  threshold->wanted = shared->wanted;
}

// Writes the columns of the k largest keys in ascending order, block_size columns at a time. Logits
// that change between the passes, because nobody waited for their producer, make a wrong selection
// but write nothing outside the row.
PLUMB_DEVICE inline void write_winners(const TopKWindow& window, const TopKThreshold& threshold,
                                       std::int32_t k, std::int32_t* indices, TopKShared* shared) {
  const int waves = (block_size() + wave_size() - 1) / wave_size();
  const LaneMask lanes_in_front = (LaneMask{1} << lane_index()) - 1;
  std::uint32_t above = 0, ties = 0;  // keys above and at the threshold in the columns in front
  int buffer = 0;
  for (std::int64_t base = 0; base < window.length; base += block_size(), buffer ^= 1) {
    const std::int64_t column = base + thread_index();
    const std::uint32_t key = column < window.length ? top_k_key(window, column) : 0;
    const bool is_above = column < window.length && key > threshold.digits;
    const bool is_tie = column < window.length && key == threshold.digits;
    const LaneMask above_lanes = ballot(all_lanes(), is_above);
    const LaneMask tie_lanes = ballot(all_lanes(), is_tie);
    if (lane_index() == 0) {
      shared->winners[buffer][wave_index()] =
          static_cast<std::uint32_t>(lane_count(above_lanes) | lane_count(tie_lanes) << 16);
    }
    block_sync();

    std::uint32_t own_above = above + lane_count(above_lanes & lanes_in_front);
    std::uint32_t own_ties = ties + lane_count(tie_lanes & lanes_in_front);
    for (int wave = 0; wave < waves; ++wave) {
      const std::uint32_t counts = shared->winners[buffer][wave];
      above += counts & 0xffff;
      ties += counts >> 16;
      own_above += wave < wave_index() ? counts & 0xffff : 0;
      own_ties += wave < wave_index() ? counts >> 16 : 0;
    }
    const bool wins = is_above || (is_tie && own_ties < threshold.wanted);
    const std::uint32_t place =
        own_above + (own_ties < threshold.wanted ? own_ties : threshold.wanted);
    if (wins && place < static_cast<std::uint32_t>(k)) {
      indices[place] = static_cast<std::int32_t>(column);
    }
  }
}

// Writes the k indices of one row. Every thread of the block calls it with the same arguments.
PLUMB_DEVICE inline void select_top_k(const TopKWindow& window, std::int32_t k,
                                      std::int32_t* indices, TopKShared* shared) {
  if (window.length <= k) {
    for (std::int64_t i = thread_index(); i < window.length; i += block_size()) {
      indices[i] = static_cast<std::int32_t>(i);
    }
    for (std::int64_t i = window.length + thread_index(); i < k; i += block_size()) {
      indices[i] = kTopKNoIndex;
    }
    return;
  }
  TopKThreshold threshold = {0, 0, static_cast<std::uint32_t>(k)};
  narrow(window, 21, 11, &threshold, shared);
  narrow(window, 10, 11, &threshold, shared);
  narrow(window, 0, 10, &threshold, shared);
  write_winners(window, threshold, k, indices, shared);
}

// One block per row, as wide as the row is worth it.
inline LaunchShape top_k_shape(std::int64_t num_rows, std::int64_t columns, plumb_stream stream) {
  const int widest = stream_properties(stream).max_threads_per_block;
  const int block = columns > 4096 ? 1024 : 256;
  return {num_rows, 1, block < widest ? block : widest, 0};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
