// SPDX-License-Identifier: Apache-2.0
//
// build_ragged_indices_from_dense (operations' specification, 2.3): concatenates prefixes of the
// rows of a dense table.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

struct DenseIndices {
  const std::int32_t* indices = nullptr;  // [rows, width]
  const std::int32_t* lengths = nullptr;  // [rows], any value: clamped to [0, width]
  std::int64_t rows = 0, width = 0, row_stride = 0;
  std::int64_t num_rows = -1;  // entries outside [0, num_rows) are holes; -1: no limit
  bool drop_holes = true;      // holes, also negative entries, are removed
};

struct RaggedIndices {
  std::vector<std::int64_t> indptr;  // [rows + 1]
  std::vector<std::int64_t> flat;    // [indptr.back()]
};

// With drop_holes = false, holes become -1 if num_rows >= 0, and stay unchanged otherwise.
RaggedIndices build_ragged_indices_from_dense(const DenseIndices& input);

}  // namespace plumb::reference
