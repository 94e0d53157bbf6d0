// SPDX-License-Identifier: Apache-2.0
//
// Flags of columns in a radix select (top_k_select.h), two bits each. above: the key is above the
// interval of keys that may be the k-th largest, so the column wins. inside: the key is in the
// interval, so the first of these columns win. Winners are written from the flags in ascending
// order.
#pragma once

#include "device/kernels/top_k/top_k_interval.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// Flags of 32 columns.
struct TopKFlags {
  std::uint32_t above, inside;
};

// Flags in shared memory: a word of each kind for every thread and tile of a row.
struct TopKFlagWords {
  std::uint32_t* above;
  std::uint32_t* inside;
};

// Numbers of flagged columns in front of a place in the row.
struct TopKCounts {
  std::uint32_t above, inside;
};

// Number of columns above in the low half, inside in the high half.
PLUMB_DEVICE inline std::uint32_t packed_counts(const TopKFlags& flags) {
  return static_cast<std::uint32_t>(bit_count(flags.above) | bit_count(flags.inside) << 16);
}

// Writes the winners among 32 adjacent columns, from `column` on, to their places among the k, and
// adds the columns to `before`.
PLUMB_DEVICE inline void write_flagged(const TopKFlags& flags, std::int32_t column,
                                       const TopKInterval& interval, std::int32_t k,
                                       std::int32_t* winners, TopKCounts& before) {
  for (std::uint32_t left = flags.above | flags.inside; left != 0; left &= left - 1) {
    const std::uint32_t bit = left & (0u - left);
    const bool is_inside = (flags.inside & bit) != 0;
    const std::uint32_t place =
        before.above + (before.inside < interval.wanted ? before.inside : interval.wanted);
    const bool wins = !is_inside || before.inside < interval.wanted;
    if (wins && place < static_cast<std::uint32_t>(k)) {
      winners[place] = column + bit_count(bit - 1);
    }
    (is_inside ? before.inside : before.above) += 1;
  }
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
