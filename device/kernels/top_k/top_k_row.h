// SPDX-License-Identifier: Apache-2.0
//
// Columns of a row as a radix select (top_k_select.h) reads them: in chunks of four adjacent
// columns, one access if they are contiguous, and in tiles of eight chunks per thread. A Logit is
// a float, or std::uint16_t for bf16. It becomes the bits of an fp32 number of the same value when
// it is loaded. Everything else sees these bits.
#pragma once

#include <plumb/ops/top_k.h>

#include "device/kernels/top_k/top_k_interval.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kTopKChunk = 4, kTopKChunks = 8;  // columns of a chunk, chunks of a thread in a tile
constexpr int kTopKColumns = kTopKChunk * kTopKChunks;

// Values of TopKWindow::nan_above. If the bits without sign are larger, the logit is a NaN and is
// ordered above all others. With kTopKMostBits none are larger: a NaN is ordered by its bits like
// other logits.
constexpr std::uint32_t kTopKInfinity = 0x7f800000u, kTopKMostBits = 0x7fffffffu;
constexpr std::uint32_t kTopKMinusZero = 0x80000000u;

// The logits that a row may use: local index i is first[i * column_stride]. At most 2^31 - 5
// logits.
template <class Logit>
struct TopKWindow {
  const Logit* first;
  std::int64_t column_stride;
  std::int64_t length;
  std::uint32_t nan_above = kTopKMostBits;
  std::uint32_t minus_zero = kTopKMinusZero;  // bits by which -0 is ordered
};

PLUMB_DEVICE inline std::uint32_t nan_above(plumb_nan_order order) {
  return order == PLUMB_NAN_SIGN_ORDERED ? kTopKMostBits : kTopKInfinity;
}

PLUMB_DEVICE inline std::uint32_t minus_zero(plumb_zero_order order) {
  return order == PLUMB_ZEROS_EQUAL ? 0 : kTopKMinusZero;
}

// The window of `length` logits that begins at an element of the logits. `Params`: those of either
// op.
template <class Logit, class Params>
PLUMB_DEVICE TopKWindow<Logit> top_k_window(const Params& p, std::int64_t element,
                                            std::int64_t length) {
  const auto* first = static_cast<const Logit*>(p.logits) + element;
  return {first, p.logits_column_stride, length, nan_above(p.nan_order), minus_zero(p.zeros)};
}

// A window as chunks. Chunk c has columns 4 c - lead to 4 c - lead + 3. With this lead, whole
// chunks start at multiples of their size, which is 8 bytes of bf16 or 16 bytes of fp32.
template <class Logit>
struct TopKRow {
  TopKWindow<Logit> window;
  std::int32_t length, lead, tiles;
};

template <class Logit>
PLUMB_DEVICE inline TopKRow<Logit> top_k_row(const TopKWindow<Logit>& window) {
  const auto address = reinterpret_cast<std::uintptr_t>(window.first);
  const bool contiguous = window.column_stride == 1;
  const int lead = contiguous ? static_cast<int>(address / sizeof(Logit) % kTopKChunk) : 0;
  const std::int64_t tile = std::int64_t{block_size()} * kTopKColumns;
  return {window, static_cast<std::int32_t>(window.length), lead,
          static_cast<std::int32_t>((window.length + lead + tile - 1) / tile)};
}

template <class Logit>
PLUMB_DEVICE inline bool is_column(const TopKRow<Logit>& row, std::int32_t column) {
  return static_cast<std::uint32_t>(column) < static_cast<std::uint32_t>(row.length);
}

// The bits by which a logit is ordered. Applied where logits are compared and not where they are
// loaded, so that loads do not wait for one another.
template <class Logit>
PLUMB_DEVICE inline std::uint32_t ordered_bits(const TopKRow<Logit>& row, std::uint32_t bits) {
  if (bits == kTopKMinusZero) return row.window.minus_zero;
  return (bits & kTopKMostBits) > row.window.nan_above ? kTopKMostBits : bits;
}

PLUMB_DEVICE inline std::uint32_t fp32_bits(float logit) { return float_bits(logit); }
PLUMB_DEVICE inline std::uint32_t fp32_bits(std::uint16_t bf16) {
  return static_cast<std::uint32_t>(bf16) << 16;
}

template <class Logit>
PLUMB_DEVICE inline std::uint32_t load_bits(const TopKRow<Logit>& row, std::int32_t column) {
  return fp32_bits(row.window.first[column * row.window.column_stride]);
}

// A chunk in one access.
template <class Logit>
PLUMB_DEVICE inline TopKBits load_four(const Logit* from) {
  const auto logits = load_vector<kTopKChunk * sizeof(Logit)>(from);
  TopKBits bits;
  PLUMB_UNROLL
  for (int i = 0; i < kTopKChunk; ++i) bits.at[i] = fp32_bits(logits.at[i]);
  return bits;
}

// Columns from `column` on; zeros outside the window.
template <class Logit>
PLUMB_DEVICE inline TopKBits load_chunk(const TopKRow<Logit>& row, std::int32_t column) {
  const bool inside = column >= 0 && column + kTopKChunk <= row.length;
  if (inside && row.window.column_stride == 1) return load_four(row.window.first + column);
  TopKBits bits{};
  std::int64_t element = column * row.window.column_stride;
  PLUMB_UNROLL
  for (int i = 0; i < kTopKChunk; ++i) {
    if (is_column(row, column + i)) bits.at[i] = fp32_bits(row.window.first[element]);
    element += row.window.column_stride;
  }
  return bits;
}

// First column of this thread's chunk j of a tile.
template <class Logit>
PLUMB_DEVICE inline std::int32_t column_of(const TopKRow<Logit>& row, int tile, int j) {
  return ((tile * kTopKChunks + j) * block_size() + thread_index()) * kTopKChunk - row.lead;
}

// This thread's chunks of a tile.
struct TopKTile {
  TopKBits chunk[kTopKChunks];
};

// Whether all columns of a tile are inside the window.
template <class Logit>
PLUMB_DEVICE inline bool is_inner(const TopKRow<Logit>& row, int tile) {
  const std::int32_t columns = block_size() * kTopKColumns;
  const std::int32_t first = tile * columns - row.lead;
  return first >= 0 && first <= row.length - columns;
}

// Which of a thread's columns of a tile are inside the window: bit 4 j + i for column i of chunk j.
template <class Logit>
PLUMB_DEVICE inline std::uint32_t columns_of(const TopKRow<Logit>& row, int tile) {
  if (is_inner(row, tile)) return ~0u;
  std::uint32_t columns = 0;
  PLUMB_UNROLL
  for (int j = 0; j < kTopKChunks; ++j) {
    const std::int32_t column = column_of(row, tile, j);
    PLUMB_UNROLL
    for (int i = 0; i < kTopKChunk; ++i) {
      columns |= is_column(row, column + i) ? 1u << (kTopKChunk * j + i) : 0;
    }
  }
  return columns;
}

// Whether each chunk of a tile is one access.
template <class Logit>
PLUMB_DEVICE inline bool is_whole(const TopKRow<Logit>& row, int tile) {
  return is_inner(row, tile) && row.window.column_stride == 1;
}

// This thread's chunk j of a whole tile.
template <class Logit>
PLUMB_DEVICE inline TopKBits load_whole_chunk(const TopKRow<Logit>& row, int tile, int j) {
  return load_four(row.window.first + column_of(row, tile, j));
}

template <class Logit>
PLUMB_DEVICE inline TopKTile load_tile(const TopKRow<Logit>& row, int tile) {
  TopKTile bits;
  if (is_whole(row, tile)) {
    PLUMB_UNROLL
    for (int j = 0; j < kTopKChunks; ++j) bits.chunk[j] = load_whole_chunk(row, tile, j);
    return bits;
  }
  PLUMB_UNROLL
  for (int j = 0; j < kTopKChunks; ++j) bits.chunk[j] = load_chunk(row, column_of(row, tile, j));
  return bits;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
