// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/build_ragged_indices_from_dense.h"

#include <algorithm>

namespace plumb::reference {

RaggedIndices build_ragged_indices_from_dense(const DenseIndices& input) {
  RaggedIndices ragged;
  ragged.indptr.push_back(0);
  for (std::int64_t row = 0; row < input.rows; ++row) {
    const auto length = std::clamp<std::int64_t>(input.lengths[row], 0, input.width);
    for (std::int64_t j = 0; j < length; ++j) {
      const std::int64_t index = input.indices[row * input.row_stride + j];
      const bool bounded = input.num_rows >= 0;
      const bool hole = index < 0 || (bounded && index >= input.num_rows);
      if (hole && input.drop_holes) continue;
      ragged.flat.push_back(hole && bounded ? -1 : index);
    }
    ragged.indptr.push_back(std::ssize(ragged.flat));
  }
  return ragged;
}

}  // namespace plumb::reference
