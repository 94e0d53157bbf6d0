// SPDX-License-Identifier: Apache-2.0
//
// remap_candidate_positions: positions of columns of the sparse logits (docs/operations/top_k.md,
// 4.8). The definition follows vLLM: _sparse_topk_remap_kernel
// (vllm/model_executor/kernels/attention/dsa/sparse_mqa_logits.py), in the form that knows the
// width of the logits.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

struct SparseColumns {
  const std::int32_t* columns = nullptr;        // [rows, k]
  const std::int32_t* sparse_blocks = nullptr;  // [rows, row_blocks]
  const std::int32_t* row_starts = nullptr;     // [rows]
  std::int64_t rows = 0, k = 0, row_blocks = 0, sparse_block_size = 1;
  std::int64_t columns_row_stride = 0, sparse_blocks_row_stride = 0;
};

// Positions [rows, k], counted from the row's start. -1: none.
inline std::vector<std::int64_t> remap_candidate_positions(const SparseColumns& input) {
  const std::int64_t size = input.sparse_block_size;
  std::vector<std::int64_t> positions;
  for (std::int64_t row = 0; row < input.rows; ++row) {
    const std::int32_t* blocks = input.sparse_blocks + row * input.sparse_blocks_row_stride;
    const std::int64_t first = input.row_starts[row] / size;
    for (std::int64_t j = 0; j < input.k; ++j) {
      const std::int64_t column = input.columns[row * input.columns_row_stride + j];
      const bool exists = column >= 0 && column < input.row_blocks * size;
      positions.push_back(exists ? (blocks[column / size] - first) * size + column % size : -1);
    }
  }
  return positions;
}

}  // namespace plumb::reference
