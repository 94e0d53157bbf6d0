// SPDX-License-Identifier: Apache-2.0
//
// Columns of a row as a radix select (top_k_select.h) reads them: in chunks of four adjacent
// columns, one access if they are contiguous, and in tiles of eight chunks per thread.
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
struct TopKWindow {
  const float* first;
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

// A window as chunks. Chunk c has columns 4 c - lead to 4 c - lead + 3. With this lead, whole
// chunks start at multiples of 16 bytes.
struct TopKRow {
  TopKWindow window;
  std::int32_t length, lead, tiles;
};

PLUMB_DEVICE inline TopKRow top_k_row(const TopKWindow& window) {
  const auto address = reinterpret_cast<std::uintptr_t>(window.first);
  const bool contiguous = window.column_stride == 1;
  const int lead = contiguous ? static_cast<int>(address / sizeof(float) % kTopKChunk) : 0;
  const std::int64_t tile = std::int64_t{block_size()} * kTopKColumns;
  return {window, static_cast<std::int32_t>(window.length), lead,
          static_cast<std::int32_t>((window.length + lead + tile - 1) / tile)};
}

PLUMB_DEVICE inline bool is_column(const TopKRow& row, std::int32_t column) {
  return static_cast<std::uint32_t>(column) < static_cast<std::uint32_t>(row.length);
}

// The bits by which a logit is ordered. Applied where logits are compared and not where they are
// loaded, so that loads do not wait for one another.
PLUMB_DEVICE inline std::uint32_t ordered_bits(const TopKRow& row, std::uint32_t bits) {
  if (bits == kTopKMinusZero) return row.window.minus_zero;
  return (bits & kTopKMostBits) > row.window.nan_above ? kTopKMostBits : bits;
}

PLUMB_DEVICE inline std::uint32_t load_bits(const TopKRow& row, std::int32_t column) {
  return float_bits(row.window.first[column * row.window.column_stride]);
}

// Columns from `column` on; zeros outside the window.
PLUMB_DEVICE inline TopKBits load_chunk(const TopKRow& row, std::int32_t column) {
  const bool inside = column >= 0 && column + kTopKChunk <= row.length;
  if (inside && row.window.column_stride == 1) {
    return load_vector(reinterpret_cast<const std::uint32_t*>(row.window.first + column));
  }
  TopKBits bits{};
  std::int64_t element = column * row.window.column_stride;
  PLUMB_UNROLL
  for (int i = 0; i < kTopKChunk; ++i) {
    if (is_column(row, column + i)) bits.at[i] = float_bits(row.window.first[element]);
    element += row.window.column_stride;
  }
  return bits;
}

// First column of this thread's chunk j of a tile.
PLUMB_DEVICE inline std::int32_t column_of(const TopKRow& row, int tile, int j) {
  return ((tile * kTopKChunks + j) * block_size() + thread_index()) * kTopKChunk - row.lead;
}

// This thread's chunks of a tile.
struct TopKTile {
  TopKBits chunk[kTopKChunks];
};

// Whether all columns of a tile are inside the window.
PLUMB_DEVICE inline bool is_inner(const TopKRow& row, int tile) {
  const std::int32_t columns = block_size() * kTopKColumns;
  const std::int32_t first = tile * columns - row.lead;
  return first >= 0 && first <= row.length - columns;
}

// Which of a thread's columns of a tile are inside the window: bit 4 j + i for column i of chunk j.
PLUMB_DEVICE inline std::uint32_t columns_of(const TopKRow& row, int tile) {
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
PLUMB_DEVICE inline bool is_whole(const TopKRow& row, int tile) {
  return is_inner(row, tile) && row.window.column_stride == 1;
}

// This thread's chunk j of a whole tile.
PLUMB_DEVICE inline TopKBits load_whole_chunk(const TopKRow& row, int tile, int j) {
  const auto* first = reinterpret_cast<const std::uint32_t*>(row.window.first);
  return load_vector(first + column_of(row, tile, j));
}

PLUMB_DEVICE inline TopKTile load_tile(const TopKRow& row, int tile) {
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
