// SPDX-License-Identifier: Apache-2.0
//
// Radix select of one row by one block, for the top_k_per_row kernels. Keys that may be the k-th
// largest form an interval. Each pass divides it into up to 2048 parts, counts their keys and keeps
// the part with the k-th largest. The first pass has parts of 1/32 of an octave, which separate
// real scores, the others equal parts. The select ends when the interval is one key, or when all
// keys in it belong to the k largest.
//
// Threads to data: four adjacent columns are a chunk, one access if they are contiguous. Thread t
// has chunks t, t + block, ..., eight of them in each tile of 8 * block. A row of one tile is read
// once and stays in registers until its columns are sorted into above the interval (they win),
// inside and below it: two bits each in shared memory. A longer row is read once too, if a list of
// its likely winners fits and does not turn out too short (top_k_list.h). Otherwise all keys are
// counted, however many are equal. The row is read once for the first parts and once for the bits,
// and its columns inside the interval once per pass. If the bits do not fit either, all of the row
// is read once per pass, and a span of tiles at a time for the winners. Legal launch: any block of
// up to 1024 threads, waves of 32 or 64, the last one may be partial; dynamic shared memory of
// top_k_room_bytes for one tile or more.
//
// Places follow from prefix sums, never from the order of arrival. Winners are in ascending column
// order; of equal keys at the threshold, the first columns win. So the result has the same bits for
// every thread order and block size.
#pragma once

#include <algorithm>
#include <limits>

#include "device/kernels/top_k/top_k_flags.h"
#include "device/kernels/top_k/top_k_interval.h"
#include "device/kernels/top_k/top_k_list.h"
#include "device/kernels/top_k/top_k_row.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

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

template <class Logit>
PLUMB_DEVICE inline void count_first_parts(const TopKRow<Logit>& row, int tile,
                                           const TopKTile& bits, TopKShared* shared) {
  const std::uint32_t columns = columns_of(row, tile);
  PLUMB_UNROLL
  for (int i = 0; i < kTopKColumns; ++i) {
    if ((columns & 1u << i) == 0) continue;
    const std::uint32_t logit = ordered_bits(row, bits.chunk[i / kTopKChunk].at[i % kTopKChunk]);
    atomic_add(&shared->histogram[first_part(logit)], 1u);
  }
}

// Sorts a thread's columns of a tile by the interval, bit 4 j + i for column i of chunk j. Counts
// the parts of the interval unless it is done.
template <class Logit>
PLUMB_DEVICE inline TopKFlags flags_of(const TopKRow<Logit>& row, int tile, const TopKTile& bits,
                                       const TopKInterval& interval, TopKShared* shared) {
  const std::uint32_t columns = columns_of(row, tile);
  TopKFlags flags = {0, 0};
  PLUMB_UNROLL
  for (int i = 0; i < kTopKColumns; ++i) {
    const std::uint32_t key =
        top_k_key(ordered_bits(row, bits.chunk[i / kTopKChunk].at[i % kTopKChunk]));
    const std::uint32_t bit = columns & 1u << i;
    if (bit == 0 || key < interval.first) continue;
    if (key > interval.last) {
      flags.above |= bit;
      continue;
    }
    flags.inside |= bit;
    if (!interval.done) count_part(interval, key, shared);
  }
  return flags;
}

// The column of a flag. `bit` has one bit set.
template <class Logit>
PLUMB_DEVICE inline std::int32_t flagged_column(const TopKRow<Logit>& row, int tile,
                                                std::uint32_t bit) {
  const int place = bit_count(bit - 1);
  return column_of(row, tile, place / kTopKChunk) + place % kTopKChunk;
}

// Sorts this thread's columns again that were inside the interval before it was narrowed.
template <class Logit>
PLUMB_DEVICE inline void sort_again(const TopKRow<Logit>& row, int tiles,
                                    const TopKFlagWords& words, const TopKInterval& interval,
                                    TopKShared* shared) {
  for (int tile = 0; tile < tiles; ++tile) {
    const int word = tile * block_size() + thread_index();
    TopKFlags flags = {words.above[word], 0};
    for (std::uint32_t left = words.inside[word]; left != 0; left &= left - 1) {
      const std::uint32_t bit = left & (0u - left);
      const std::uint32_t key =
          top_k_key(ordered_bits(row, load_bits(row, flagged_column(row, tile, bit))));
      if (key > interval.last) flags.above |= bit;
      if (!holds(interval, key)) continue;
      flags.inside |= bit;
      if (!interval.done) count_part(interval, key, shared);
    }
    words.above[word] = flags.above;
    words.inside[word] = flags.inside;
  }
}

// Gathers the four bits of chunk j from the words of eight adjacent threads.
PLUMB_DEVICE inline std::uint32_t gather_chunks(const std::uint32_t* words, int j) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kTopKChunks; i += TopKBits::kCount) {
    const TopKBits four = load_vector(words + i);
    PLUMB_UNROLL
    for (int t = 0; t < TopKBits::kCount; ++t) {
      bits |= (four.at[t] >> (kTopKChunk * j) & 15u) << (kTopKChunk * (i + t));
    }
  }
  return bits;
}

// The flags of eight adjacent chunks of a tile, from chunk `first` on. Eight threads have these
// chunks: adjacent ones, if eight divides the block size.
PLUMB_DEVICE inline TopKFlags gather_flags(const TopKFlagWords& words, int tile, int first) {
  TopKFlags flags = {0, 0};
  int j = first / block_size(), thread = first - j * block_size();
  if (block_size() % kTopKChunks == 0) {
    const int word = tile * block_size() + thread;
    return {gather_chunks(words.above + word, j), gather_chunks(words.inside + word, j)};
  }
  for (int i = 0; i < kTopKChunks; ++i) {
    const int word = tile * block_size() + thread;
    flags.above |= (words.above[word] >> (kTopKChunk * j) & 15u) << (kTopKChunk * i);
    flags.inside |= (words.inside[word] >> (kTopKChunk * j) & 15u) << (kTopKChunk * i);
    if (++thread == block_size()) thread = 0, ++j;
  }
  return flags;
}

// Writes the winners among `count` tiles from `tile` on, in ascending order. Their flags start at
// word 0. If logits change between passes, because a wait for their producer is missing, the
// selection is wrong, but nothing is written outside the row.
template <class Logit>
PLUMB_DEVICE inline void write_winners(const TopKRow<Logit>& row, int tile, int count,
                                       const TopKFlagWords& words, const TopKInterval& interval,
                                       std::int32_t k, std::int32_t* indices, TopKCounts& before,
                                       TopKShared* shared) {
  block_sync();
  for (int i = 0; i < count; ++i) {
    const int first = thread_index() * kTopKChunks;  // number of a chunk in the tile
    const TopKFlags flags = gather_flags(words, i, first);
    const TopKSum sum = sum_over_block(packed_counts(flags), shared->wave_sums[i % 2]);
    TopKCounts in_front = {before.above + (sum.in_front & 0xffff),
                           before.inside + (sum.in_front >> 16)};
    const std::int32_t column =
        ((tile + i) * kTopKChunks * block_size() + first) * kTopKChunk - row.lead;
    write_flagged(flags, column, interval, k, indices, in_front);
    before.above += sum.total & 0xffff;
    before.inside += sum.total >> 16;
  }
}

PLUMB_DEVICE inline void store_flags(const TopKFlags& flags, int tile, const TopKFlagWords& words) {
  words.above[tile * block_size() + thread_index()] = flags.above;
  words.inside[tile * block_size() + thread_index()] = flags.inside;
}

// Sorts all columns by the part of the first pass that holds the k-th largest. Counts the parts of
// that interval unless it is done. Flags are stored if there is room for them.
template <bool kept, class Logit>
PLUMB_DEVICE inline TopKInterval sort_by_first_part(const TopKRow<Logit>& row, int tiles, bool fits,
                                                    std::uint32_t k, const TopKFlagWords& words,
                                                    TopKShared* shared) {
  TopKTile bits;
  if (kept) {
    bits = load_tile(row, 0);
    clear(shared);
  }
  for (int tile = 0; tile < tiles; ++tile) {
    if (!kept) bits = load_tile(row, tile);
    count_first_parts(row, tile, bits, shared);
  }
  find_part(k, shared);
  const TopKInterval interval = interval_of_first_part(shared);
  for (int tile = 0; tile < tiles && (fits || !interval.done); ++tile) {
    if (!kept) bits = load_tile(row, tile);
    const TopKFlags flags = flags_of(row, tile, bits, interval, shared);
    if (fits) store_flags(flags, tile, words);
  }
  return interval;
}

// Room in dynamic shared memory: flags of `span` tiles, and a list of `candidates` candidates (0:
// no list).
struct TopKRoom {
  int span, candidates;
};

inline std::size_t top_k_room_bytes(int block, const TopKRoom& room) {
  const std::size_t flags = std::size_t{2} * room.span * block * sizeof(std::uint32_t);
  return flags + room.candidates * sizeof(TopKCandidate);
}

// Selects from a row of more than k columns. `kept`: the row is one tile, in registers.
template <bool kept, class Logit>
PLUMB_DEVICE inline void select_winners(const TopKRow<Logit>& row, std::int32_t k,
                                        std::int32_t* indices, const TopKRoom& room,
                                        TopKShared* shared) {
  const int span = room.span;
  auto* const above = dynamic_shared<std::uint32_t>();
  const TopKFlagWords words = {above, above + span * block_size()};
  const int tiles = kept ? 1 : row.tiles;
  const bool fits = kept || tiles <= span;
  if (!kept) {
    clear(shared);
    auto* const candidates = reinterpret_cast<TopKCandidate*>(words.inside + span * block_size());
    const TopKList list = {candidates, static_cast<std::uint32_t>(room.candidates)};
    if (fits && room.candidates > 0 && select_from_list(row, k, indices, words, list, shared)) {
      return;
    }
  }
  TopKInterval interval =
      sort_by_first_part<kept>(row, tiles, fits, static_cast<std::uint32_t>(k), words, shared);
  for (int pass = 0; pass < kTopKPasses && !interval.done; ++pass) {
    find_part(interval.wanted, shared);
    interval = narrowed(interval, shared);
    if (fits) sort_again(row, tiles, words, interval, shared);
    for (int tile = 0; tile < tiles && !fits && !interval.done; ++tile) {
      flags_of(row, tile, load_tile(row, tile), interval, shared);
    }
  }
  TopKCounts before = {0, 0};
  if (fits) return write_winners(row, 0, tiles, words, interval, k, indices, before, shared);
  interval.done = true;  // nothing is counted any more
  for (int tile = 0; tile < tiles; tile += span) {
    const int count = tiles - tile < span ? tiles - tile : span;
    for (int i = 0; i < count; ++i) {
      store_flags(flags_of(row, tile + i, load_tile(row, tile + i), interval, shared), i, words);
    }
    write_winners(row, tile, count, words, interval, k, indices, before, shared);
  }
}

// Writes the k indices of one row. Every thread of the block calls it with the same arguments.
template <bool kept, class Logit>
PLUMB_DEVICE inline void select_top_k(const TopKWindow<Logit>& window, std::int32_t k,
                                      std::int32_t* indices, const TopKRoom& room,
                                      TopKShared* shared) {
  if (window.length > k) return select_winners<kept>(top_k_row(window), k, indices, room, shared);
  for (std::int64_t i = thread_index(); i < window.length; i += block_size()) {
    indices[i] = static_cast<std::int32_t>(i);
  }
  for (std::int64_t i = window.length + thread_index(); i < k; i += block_size()) {
    indices[i] = kTopKNoIndex;
  }
}

// A list for 2 k columns and more is hardly ever too short. Three quarters of that are usually
// enough too. The list counts columns in 16 bits.
inline TopKRoom top_k_room(const Properties& device, int block, std::int64_t tiles,
                           std::int64_t k) {
  const auto bytes = static_cast<std::int64_t>(device.shared_bytes_per_block - sizeof(TopKShared));
  const auto tile_bytes = static_cast<std::int64_t>(top_k_room_bytes(block, {1, 0}));
  const std::int64_t span = std::clamp<std::int64_t>(tiles, 1, bytes / tile_bytes);
  const std::int64_t useful = 2 * k + 64 * tiles;
  const std::int64_t left = (bytes - span * tile_bytes) / std::int64_t{sizeof(TopKCandidate)};
  const std::int64_t candidates = std::min({useful, left, std::int64_t{0xffff}});
  const bool listed = tiles > 1 && tiles <= span && 4 * candidates >= 3 * useful;
  return {static_cast<int>(span), listed ? static_cast<int>(candidates) : 0};
}

// `Params`: those of either op. Indices are int32_t.
template <class Params>
bool legal_k(const Params& p) {
  return p.k >= 1 && p.k <= std::numeric_limits<std::int32_t>::max() && p.indices_row_stride >= p.k;
}

template <class Params>
bool legal_format(const Params& p) {
  return p.logits_format == PLUMB_LOGITS_F32 || p.logits_format == PLUMB_LOGITS_BF16;
}

struct TopKLaunch {
  LaunchShape shape;
  TopKRoom room;
  bool kept;
};

// One block per row. Many rows: small blocks, so that several share a multiprocessor, and one loads
// while another counts. They are wider if shared memory would admit too few of them: a
// multiprocessor has registers for 1024 threads. Few rows: blocks wide enough to keep the row in
// registers. If rows start at whole chunks, a window that starts inside a chunk is shorter by its
// lead; otherwise it may reach one chunk further. `Params`: those of either op.
template <class Params>
TopKLaunch top_k_launch(const Params& p) {
  const Properties& device = stream_properties(p.stream);
  const bool whole_rows =
      reinterpret_cast<std::uintptr_t>(p.logits) % 16 == 0 && p.logits_row_stride % kTopKChunk == 0;
  const std::int64_t columns = p.columns + (whole_rows ? 0 : kTopKChunk - 1);
  const int widest = device.max_threads_per_block < 1024 ? device.max_threads_per_block : 1024;
  const std::int64_t threads = std::int64_t{device.multiprocessors} * widest;
  for (int block = 256;; block *= 2) {
    const std::int64_t tile = block * kTopKColumns;
    const std::int64_t tiles = (columns + tile - 1) / tile;
    const TopKRoom room = top_k_room(device, block, tiles, p.k);
    const std::size_t bytes = top_k_room_bytes(block, room);
    const bool few_rows = p.rows * block < threads;
    const bool crowded =
        (sizeof(TopKShared) + bytes) * 1024 > device.shared_bytes_per_block * block;
    if (tiles <= 1 || 2 * block > widest || !(few_rows || crowded)) {
      return {{p.rows, 1, block, bytes}, room, tiles <= 1};
    }
  }
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
