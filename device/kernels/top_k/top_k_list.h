// SPDX-License-Identifier: Apache-2.0
//
// Radix select (top_k_select.h) of a row of several tiles that reads the row once. A sample of its
// columns gives the least key of a candidate. Usually little more than k columns have such a key,
// and their list fits into shared memory. Passes count the list instead of the row. If the list
// overflows or has fewer than k columns, nothing is selected, and the caller counts all keys. An
// incomplete list is never used.
//
// Waves append to the list in the order in which they arrive. The result does not depend on that
// order: passes only count, and flags put the columns back into order.
#pragma once

#include "device/kernels/top_k/top_k_flags.h"
#include "device/kernels/top_k/top_k_interval.h"
#include "device/kernels/top_k/top_k_row.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

struct alignas(8) TopKCandidate {
  std::uint32_t bits;  // ordered_bits of the logit
  std::int32_t column;
};

// The list in shared memory. capacity 0: there is no room for it.
struct TopKList {
  TopKCandidate* candidates;
  std::uint32_t capacity;
};

// The sample: four chunks of each thread, in the middle of each quarter of a row that is longer
// than a tile. Its contents affect nothing but the time.
constexpr int kTopKSamples = 4;

// How many columns of the sample are to be candidates: k times the sample's share of the row, and a
// quarter and 16 more, which is at least four standard deviations.
template <class Logit>
PLUMB_DEVICE inline std::uint32_t sampled_candidates(const TopKRow<Logit>& row, std::uint32_t k,
                                                     std::int32_t sampled) {
  const float share = static_cast<float>(sampled) / static_cast<float>(row.length);
  const auto expected = static_cast<std::uint32_t>(static_cast<float>(k) * share);
  return expected + expected / 4 + 16;
}

template <class Logit>
PLUMB_DEVICE inline TopKBits load_sample(const TopKRow<Logit>& row, int j) {
  const std::int32_t stride = (row.length + row.lead) / kTopKChunk / kTopKSamples;
  const std::int32_t chunk = j * stride + (stride - block_size()) / 2 + thread_index();
  return load_chunk(row, chunk * kTopKChunk - row.lead);
}

template <class Logit>
PLUMB_DEVICE inline void count_sample(const TopKRow<Logit>& row, TopKShared* shared) {
  TopKBits bits[kTopKSamples];
  PLUMB_UNROLL
  for (int j = 0; j < kTopKSamples; ++j) bits[j] = load_sample(row, j);
  PLUMB_UNROLL
  for (int i = 0; i < kTopKSamples * kTopKChunk; ++i) {
    const std::uint32_t logit = ordered_bits(row, bits[i / kTopKChunk].at[i % kTopKChunk]);
    atomic_add(&shared->histogram[first_part(logit)], 1u);
  }
}

// Whether the part with the rank-th sampled key holds so many more sampled keys (above an eighth of
// `rank`) that a list of all candidates might overflow.
PLUMB_DEVICE inline bool is_crowded(const TopKInterval& interval, std::uint32_t rank,
                                    const TopKShared* shared) {
  return !interval.done && shared->count - interval.wanted > rank / 8;
}

template <class Logit>
PLUMB_DEVICE inline TopKInterval narrowed_by_sample(const TopKRow<Logit>& row,
                                                    const TopKInterval& interval,
                                                    TopKShared* shared) {
  PLUMB_NO_UNROLL
  for (int j = 0; j < kTopKSamples; ++j) {
    const TopKBits bits = load_sample(row, j);
    PLUMB_UNROLL
    for (int i = 0; i < kTopKChunk; ++i) {
      const std::uint32_t key = top_k_key(ordered_bits(row, bits.at[i]));
      if (holds(interval, key)) count_part(interval, key, shared);
    }
  }
  find_part(interval.wanted, shared);
  return narrowed(interval, shared);
}

// This thread's columns of a tile whose keys are at least `least`: bit 4 j + i for column i of
// chunk j. Logits of such keys are one range of bit patterns: positive ones ascend with their
// patterns up to 2^31 - 1, negative ones follow and descend.
template <class Logit>
PLUMB_DEVICE inline std::uint32_t columns_from(const TopKRow<Logit>& row, int tile,
                                               const TopKTile& bits, std::uint32_t least) {
  const std::uint32_t first = least & 0x80000000u ? least & 0x7fffffffu : 0;
  std::uint32_t flags = 0;
  PLUMB_UNROLL
  for (int i = 0; i < kTopKColumns; ++i) {
    const std::uint32_t logit = ordered_bits(row, bits.chunk[i / kTopKChunk].at[i % kTopKChunk]);
    flags |= logit - first <= ~least ? 1u << i : 0;
  }
  return flags & columns_of(row, tile);
}

// Reserves `count` places of the list for this thread and returns the first.
PLUMB_DEVICE inline std::uint32_t take_places(std::uint32_t count, TopKShared* shared) {
  const int last = bit_count(all_lanes()) - 1;
  const std::uint32_t up_to_here = sum_up_to_lane(count);
  std::uint32_t first = 0;
  if (lane_index() == last) first = atomic_add(&shared->listed, up_to_here);
  return shuffle(all_lanes(), first, last, wave_size()) + up_to_here - count;
}

// Lists the candidates of a row, whose first tile is in `bits`, and clears the flags of all
// columns. If the candidates of a thread do not all fit, it lists none of them. The next tile is
// loaded chunk by chunk into registers that become free.
template <class Logit>
PLUMB_DEVICE inline void list_candidates(const TopKRow<Logit>& row, TopKTile bits,
                                         std::uint32_t least, const TopKFlagWords& words,
                                         const TopKList& list, TopKShared* shared) {
  for (int tile = 0; tile < row.tiles; ++tile) {
    std::uint32_t flags = columns_from(row, tile, bits, least);
    const auto count = static_cast<std::uint32_t>(bit_count(flags));
    const std::uint32_t place = take_places(count, shared);
    if (place + count > list.capacity) flags = 0;
    const bool more = tile + 1 < row.tiles, whole = more && is_whole(row, tile + 1);
    TopKCandidate* next = list.candidates + place;
    PLUMB_UNROLL
    for (int j = 0; j < kTopKChunks; ++j) {
      const std::int32_t column = column_of(row, tile, j);
      PLUMB_UNROLL
      for (int i = 0; i < kTopKChunk; ++i) {
        if (flags >> (kTopKChunk * j + i) & 1) {
          *next++ = {ordered_bits(row, bits.chunk[j].at[i]), column + i};
        }
      }
      if (whole) {
        bits.chunk[j] = load_whole_chunk(row, tile + 1, j);
      } else if (more) {
        bits.chunk[j] = load_chunk(row, column_of(row, tile + 1, j));
      }
    }
    const int word = tile * block_size() + thread_index();
    words.above[word] = words.inside[word] = 0;
  }
}

// Counts the list and narrows the interval until the winners are known.
PLUMB_DEVICE inline TopKInterval interval_of_list(const TopKCandidate* candidates, int count,
                                                  std::uint32_t k, TopKShared* shared) {
  for (int i = thread_index(); i < count; i += block_size()) {
    atomic_add(&shared->histogram[first_part(candidates[i].bits)], 1u);
  }
  find_part(k, shared);
  TopKInterval interval = interval_of_first_part(shared);
  for (int pass = 0; pass < kTopKPasses && !interval.done; ++pass) {
    for (int i = thread_index(); i < count; i += block_size()) {
      const std::uint32_t key = top_k_key(candidates[i].bits);
      if (holds(interval, key)) count_part(interval, key, shared);
    }
    find_part(interval.wanted, shared);
    interval = narrowed(interval, shared);
  }
  return interval;
}

// Sets the flags of candidates: bit i of word w is column 32 w + i - lead. Each bit is added once.
template <class Logit>
PLUMB_DEVICE inline void flag_list(const TopKRow<Logit>& row, const TopKCandidate* candidates,
                                   int count, const TopKInterval& interval,
                                   const TopKFlagWords& words) {
  for (int i = thread_index(); i < count; i += block_size()) {
    const TopKCandidate candidate = candidates[i];
    const std::uint32_t key = top_k_key(candidate.bits);
    if (key < interval.first) continue;
    const auto place = static_cast<std::uint32_t>(candidate.column + row.lead);
    std::uint32_t* const flags = key > interval.last ? words.above : words.inside;
    atomic_add(flags + place / 32, 1u << place % 32);
  }
}

// Each thread takes as many adjacent words as the row has tiles. Winners are put in order in
// `ordered`, the memory of the list, and are then stored in whole lines. Counts have 16 bits: at
// most 2^16 - 1 columns have flags.
template <class Logit>
PLUMB_DEVICE inline void write_list(const TopKRow<Logit>& row, const TopKInterval& interval,
                                    std::int32_t k, const TopKFlagWords& words,
                                    std::int32_t* ordered, std::int32_t* indices,
                                    TopKShared* shared) {
  block_sync();
  const int first = thread_index() * row.tiles;
  std::uint32_t own = 0;
  for (int i = first; i < first + row.tiles; ++i) {
    own += packed_counts({words.above[i], words.inside[i]});
  }
  const TopKSum sum = sum_over_block(own, shared->wave_sums[0]);
  TopKCounts before = {sum.in_front & 0xffff, sum.in_front >> 16};
  for (int i = first; i < first + row.tiles; ++i) {
    write_flagged({words.above[i], words.inside[i]}, i * 32 - row.lead, interval, k, ordered,
                  before);
  }
  block_sync();
  for (int i = thread_index(); i < k; i += block_size()) indices[i] = ordered[i];
}

// Selects from a row of more than k columns. The histogram is clear at the call. The result is
// false if nothing is selected, and the histogram is clear again.
template <class Logit>
PLUMB_DEVICE inline bool select_from_list(const TopKRow<Logit>& row, std::int32_t k,
                                          std::int32_t* indices, const TopKFlagWords& words,
                                          const TopKList& list, TopKShared* shared) {
  const auto wanted = static_cast<std::uint32_t>(k);
  const std::int32_t sampled = block_size() * kTopKSamples * kTopKChunk;
  const std::uint32_t rank = sampled_candidates(row, wanted, sampled);
  if (row.tiles < 2 || 2 * rank > static_cast<std::uint32_t>(sampled)) return false;
  count_sample(row, shared);
  const TopKTile bits = load_tile(row, 0);
  find_part(rank, shared);
  TopKInterval likely = interval_of_first_part(shared);
  if (is_crowded(likely, rank, shared)) likely = narrowed_by_sample(row, likely, shared);
  list_candidates(row, bits, likely.first, words, list, shared);
  block_sync();
  const std::uint32_t listed = shared->listed;
  if (listed < wanted || listed > list.capacity) return false;
  const auto count = static_cast<int>(listed);
  const TopKInterval interval = interval_of_list(list.candidates, count, wanted, shared);
  flag_list(row, list.candidates, count, interval, words);
  auto* const ordered = reinterpret_cast<std::int32_t*>(list.candidates);
  write_list(row, interval, k, words, ordered, indices, shared);
  return true;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
