// SPDX-License-Identifier: Apache-2.0
//
// Wrong ways to read an input, as explanations of a failed case: the neighbouring row, the two
// halves of a row swapped, the transposed matrix, int64 as int32.
#pragma once

#include <string>
#include <vector>

#include "cases/tensors/tensor.h"

namespace plumb::cases {

struct MisreadInput {
  std::string name;     // "x.next_row"
  std::string meaning;  // "reads row r + 1 of x for row r"
  // The input as the wrong kernel sees it. The right kernel computes from it what the wrong kernel
  // computes.
  HostTensor seen;
  bool may_leave = false;  // integers that may lead outside the tensors that they index
};

// Only readings that differ from the input. A tensor in pieces (TensorSpec::sparse) has none that
// take another row. Empty for outputs, and for more than 2^18 elements.
std::vector<MisreadInput> misread_inputs(const HostTensor& input);

}  // namespace plumb::cases
