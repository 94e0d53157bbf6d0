// SPDX-License-Identifier: Apache-2.0
//
// Windows of rows, and permutations, for the ops on the sparse blocks of V4.1's two-level top-k.
// The batch has live and padded rows. Windows of padded rows are empty.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/ops/indexer/ragged_windows.h"
#include "cases/tables/row.h"
#include "cases/tensors/step.h"

namespace plumb::cases {

class SparseWindows {
 public:
  // Throws BadRow if a column does not fit into int32.
  SparseWindows(const Row& row, std::int64_t rows);

  Window of(const Step& step, std::int64_t row) const;
  std::int64_t length(const Step& step, std::int64_t row) const;  // 0: the window is empty

 private:
  RaggedWindows windows_;
};
// The parameters that SparseWindows reads.
std::vector<Parameter> sparse_window_parameters();

// A permutation of [0, count) that the seed chooses.
class ShuffledNumbers {
 public:
  ShuffledNumbers(std::uint64_t seed, std::int64_t count);
  std::int64_t operator[](std::int64_t i) const { return (i * factor_ + turn_) % count_; }

 private:
  std::int64_t count_, factor_, turn_;
};

}  // namespace plumb::cases
