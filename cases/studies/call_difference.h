// SPDX-License-Identifier: Apache-2.0
//
// Compares two calls of an op that read the same bits: which outputs differ, and whether two right
// results may differ that much.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/studies/call_rows.h"

namespace plumb::cases {

// A row of call a and a row of call b that have the same inputs.
struct RowPair {
  std::int64_t a = 0, b = 0;
};

struct TensorDifference {
  std::string tensor;
  std::int64_t elements = 0, elements_differ = 0;  // counts of promised elements
  std::int64_t rows = 0, rows_differ = 0;          // rows of the last dimension
  std::string first;                               // first difference: "[1, 0]: 0.5 and 0.502"
  // Largest difference divided by the one that two right results may have, and where. -1: no
  // floating-point tensor with an error model.
  double of_bound = -1;
  std::string largest;
};

struct CallDifference {
  std::vector<TensorDifference> tensors;  // tensors that differ
  // First line of a failed verdict on a differing tensor, if it concerns a compared row; "" if
  // there is none.
  std::string a_wrong, b_wrong;
  // One entry for each pair of rows, or one for the whole calls. `beyond`: two right results cannot
  // differ that much, or a failed verdict is about this pair.
  std::vector<bool> differs, beyond;

  bool wrong() const { return !a_wrong.empty() || !b_wrong.empty(); }
};

// Compares pairs of rows, or whole calls if `pairs` is empty. Selected indices whose order is free
// are sorted first. Throws BadRow for inputs that the reference refuses.
CallDifference diff_calls(const OutsideCall& a, const OutsideCall& b,
                          const std::vector<RowPair>& pairs);

}  // namespace plumb::cases
