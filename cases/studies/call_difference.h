// SPDX-License-Identifier: Apache-2.0
//
// Two calls of an op that read the same bits: which outputs differ, and whether two right results
// may differ by as much.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/studies/call_rows.h"

namespace plumb::cases {

// A row of the one call and a row of the other one, with the same inputs.
struct RowPair {
  std::int64_t a = 0, b = 0;
};

struct TensorDifference {
  std::string tensor;
  std::int64_t elements = 0, elements_differ = 0;  // of promised elements
  std::int64_t rows = 0, rows_differ = 0;          // of the last dimension
  std::string first;                               // "[1, 0]: 0.5 and 0.502"
  // Largest distance in units of what two right results may differ, and where. -1: no
  // floating-point tensor with an error model.
  double of_bound = -1;
  std::string largest;
};

struct CallDifference {
  std::vector<TensorDifference> tensors;  // that differ
  // The first line of the verdict on a tensor that differs, in a row that was compared; "": right.
  std::string a_wrong, b_wrong;
  // Of the pairs of rows, or of the one pair of whole calls.
  std::vector<bool> differs, beyond;

  bool wrong() const { return !a_wrong.empty() || !b_wrong.empty(); }
};

// Rows of the calls, or the whole calls if `pairs` is empty. Selected indices, whose order is free,
// are compared in one order. Throws BadRow for inputs of which no output is right.
CallDifference diff_calls(const OutsideCall& a, const OutsideCall& b,
                          const std::vector<RowPair>& pairs);

}  // namespace plumb::cases
