// SPDX-License-Identifier: Apache-2.0
//
// The interval of keys that a radix select narrows (top_k_select.h), and the histogram in shared
// memory in which a block finds the part to keep. Parts ascend with their keys. Any block of up to
// 1024 threads, waves of 32 or 64; the last wave may be partial.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kTopKBins = 2048;
constexpr int kTopKMostWaves = 32;  // 1024 threads in waves of 32

using TopKBits = Vector<std::uint32_t>;

struct TopKShared {
  std::uint32_t histogram[kTopKBins];
  alignas(16) std::uint32_t wave_sums[2][kTopKMostWaves];
  std::uint32_t digit, wanted, count;
  std::uint32_t listed;  // number of candidates so far (top_k_list.h)
};

// Key of a logit's bits. Keys are unsigned and ascend so: -NaN, -inf, ..., -0, +0, ..., +inf, +NaN.
PLUMB_DEVICE inline std::uint32_t top_k_key(std::uint32_t bits) {
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

PLUMB_DEVICE inline void clear(TopKShared* shared) {
  for (int part = thread_index(); part < kTopKBins; part += block_size()) {
    shared->histogram[part] = 0;
  }
  for (int wave = thread_index(); wave < kTopKMostWaves; wave += block_size()) {
    shared->wave_sums[0][wave] = shared->wave_sums[1][wave] = 0;
  }
  if (thread_index() == 0) shared->listed = 0;
  block_sync();
}

// Keys from `first` to `last` may be the k-th largest. `wanted` of the row's keys among them belong
// to the k largest. The next pass divides the interval into parts of 2^shift keys.
struct TopKInterval {
  std::uint32_t first, last, wanted;
  int shift;
  bool done;
};

// The interval has at most 2^30 keys, and after each pass at most 2^19, 2^8 and one.
constexpr int kTopKPasses = 3;

PLUMB_DEVICE inline bool holds(const TopKInterval& interval, std::uint32_t key) {
  return key - interval.first <= interval.last - interval.first;
}

// Parts of the first pass: 32 per octave from 2^-20 to 2^12 on both sides of zero. The outermost
// and innermost parts take all other keys. Parts ascend with their keys.
constexpr std::uint32_t kTopKOctave = 32, kTopKSide = kTopKBins / 2, kTopKPartShift = 23 - 5;
constexpr std::uint32_t kTopKLeastPart = (127 - 20) * kTopKOctave;

PLUMB_DEVICE inline std::uint32_t first_part(std::uint32_t bits) {
  const std::uint32_t part = (bits & 0x7fffffffu) >> kTopKPartShift;
  const std::uint32_t above = part > kTopKLeastPart ? part - kTopKLeastPart : 0;
  const std::uint32_t place = above < kTopKSide ? above : kTopKSide - 1;
  return bits & 0x80000000u ? kTopKSide - 1 - place : kTopKSide + place;
}

PLUMB_DEVICE inline TopKInterval with_parts(std::uint32_t first, std::uint32_t last,
                                            std::uint32_t wanted, std::uint32_t count) {
  TopKInterval interval = {first, last, wanted, 0, first == last || wanted == count};
  while ((last - first) >> interval.shift >= kTopKBins) ++interval.shift;
  return interval;
}

PLUMB_DEVICE inline TopKInterval interval_of_first_part(const TopKShared* shared) {
  const bool negative = shared->digit < kTopKSide;
  const std::uint32_t place = negative ? kTopKSide - 1 - shared->digit : shared->digit - kTopKSide;
  const std::uint32_t least = place == 0 ? 0 : (kTopKLeastPart + place) << kTopKPartShift;
  const std::uint32_t most =
      place == kTopKSide - 1 ? 0x7fffffffu : ((kTopKLeastPart + place + 1) << kTopKPartShift) - 1;
  const std::uint32_t first = negative ? ~(most | 0x80000000u) : least | 0x80000000u;
  const std::uint32_t last = negative ? ~(least | 0x80000000u) : most | 0x80000000u;
  return with_parts(first, last, shared->wanted, shared->count);
}

PLUMB_DEVICE inline TopKInterval narrowed(const TopKInterval& interval, const TopKShared* shared) {
  const std::uint32_t first = interval.first + (shared->digit << interval.shift);
  const std::uint32_t width = (1u << interval.shift) - 1;
  const std::uint32_t last = interval.last - first < width ? interval.last : first + width;
  return with_parts(first, last, shared->wanted, shared->count);
}

struct TopKSum {
  std::uint32_t in_front, total;  // over the threads in front of this one; over the block
};

// Sum of `value` over the lanes of a wave up to and including this one.
PLUMB_DEVICE inline std::uint32_t sum_up_to_lane(LaneMask wave, int lanes, std::uint32_t value) {
  PLUMB_NO_UNROLL
  for (int distance = 1; distance < lanes; distance *= 2) {
    const int source = lane_index() - distance;
    const std::uint32_t other =
        shuffle(wave, value, source < 0 ? lane_index() : source, wave_size());
    if (source >= 0) value += other;
  }
  return value;
}

// Sum over the lanes up to this one. For a whole wave, mask and size are constants.
PLUMB_DEVICE inline std::uint32_t sum_up_to_lane(std::uint32_t value) {
  if (all_lanes() == whole_wave()) return sum_up_to_lane(whole_wave(), wave_size(), value);
  return sum_up_to_lane(all_lanes(), bit_count(all_lanes()), value);
}

// Sums `value` over the block. Contains one barrier. Consecutive calls need different `wave_sums`:
// two buffers in turn.
PLUMB_DEVICE inline TopKSum sum_over_block(std::uint32_t value, std::uint32_t* wave_sums) {
  const std::uint32_t up_to_here = sum_up_to_lane(value);
  if (lane_index() == bit_count(all_lanes()) - 1) wave_sums[wave_index()] = up_to_here;
  block_sync();
  const int waves = (block_size() + wave_size() - 1) / wave_size();
  TopKSum sum = {up_to_here - value, 0};
  PLUMB_NO_UNROLL
  for (int first = 0; first < waves; first += TopKBits::kCount) {
    const TopKBits sums = load_vector(wave_sums + first);
    PLUMB_UNROLL
    for (int i = 0; i < TopKBits::kCount; ++i) {
      sum.in_front += first + i < wave_index() ? sums.at[i] : 0;
      sum.total += sums.at[i];  // zeros behind the last wave
    }
  }
  return sum;
}

PLUMB_DEVICE inline std::uint32_t sum_of_parts(const std::uint32_t* parts, int count) {
  std::uint32_t sum = 0;
  PLUMB_NO_UNROLL
  for (int i = 0; i < count; i += TopKBits::kCount) {
    const TopKBits four = load_vector(parts + i);
    sum += (four.at[0] + four.at[1]) + (four.at[2] + four.at[3]);
  }
  return sum;
}

PLUMB_DEVICE inline void clear_parts(std::uint32_t* parts, int count) {
  PLUMB_NO_UNROLL
  for (int i = 0; i < count; i += TopKBits::kCount) store_vector(parts + i, TopKBits{});
}

// Finds the part with the wanted-th largest of the counted keys. Each thread has whole vectors of
// adjacent parts, and the thread that has the part tells the others. Clears the histogram for the
// next pass. Returns the number of counted keys. If there are fewer than `wanted`, no part is
// found.
PLUMB_DEVICE inline std::uint32_t find_part(std::uint32_t wanted, TopKShared* shared) {
  const int vectors = (kTopKBins / TopKBits::kCount + block_size() - 1) / block_size();
  const int begin = thread_index() * vectors * TopKBits::kCount;
  const int end = begin + vectors * TopKBits::kCount;
  const int first = begin < kTopKBins ? begin : kTopKBins;
  const int last = end < kTopKBins ? end : kTopKBins;
  std::uint32_t* const parts = shared->histogram + first;
  block_sync();
  const std::uint32_t own = sum_of_parts(parts, last - first);
  const TopKSum sum = sum_over_block(own, shared->wave_sums[0]);
  std::uint32_t larger = sum.total - sum.in_front - own;
  if (larger < wanted && wanted <= larger + own) {
    int part = last - 1;
    PLUMB_NO_UNROLL
    for (; larger + shared->histogram[part] < wanted; --part) larger += shared->histogram[part];
    shared->digit = static_cast<std::uint32_t>(part);
    shared->wanted = wanted - larger;
    shared->count = shared->histogram[part];
  }
  clear_parts(parts, last - first);
  block_sync();
  return sum.total;
}

PLUMB_DEVICE inline void count_part(const TopKInterval& interval, std::uint32_t key,
                                    TopKShared* shared) {
  atomic_add(&shared->histogram[(key - interval.first) >> interval.shift], 1u);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
