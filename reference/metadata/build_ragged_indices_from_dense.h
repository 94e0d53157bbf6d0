// SPDX-License-Identifier: Apache-2.0
//
// build_ragged_indices_from_dense (operations' specification, 2.3): prefixes of the rows of a dense
// table, one behind the other.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

struct DenseIndices {
  const std::int32_t* indices = nullptr;  // [rows, width]
  const std::int32_t* lengths = nullptr;  // [rows], any value: clamped to [0, width]
  std::int64_t rows = 0, width = 0, row_stride = 0;
  std::int64_t num_rows = -1;  // entries outside [0, num_rows) are holes; -1: no such bound
  bool drop_holes = true;      // negative entries are holes too, and what follows moves up
};

struct RaggedIndices {
  std::vector<std::int64_t> indptr;  // [rows + 1]
  std::vector<std::int64_t> flat;    // [indptr.back()]
};

// Holes that are kept are -1 where there is a bound, and else stay as they are.
RaggedIndices build_ragged_indices_from_dense(const DenseIndices& input);

}  // namespace plumb::reference
