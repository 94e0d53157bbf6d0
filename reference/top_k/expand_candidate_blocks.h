// SPDX-License-Identifier: Apache-2.0
//
// expand_candidate_blocks: the sparse blocks of V4.1's candidate blocks (docs/operations/top_k.md,
// 4.7). The definition follows vLLM: _expand_candidates_kernel
// (vllm/model_executor/kernels/attention/dsa/sparse_mqa_logits.py).
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace plumb::reference {

struct CandidateLists {
  const std::int32_t* blocks = nullptr;      // [rows, topk_blocks], counted from the row's start
  const std::int32_t* row_starts = nullptr;  // [rows]
  const std::int32_t* row_ends = nullptr;    // [rows]
  std::int64_t rows = 0, topk_blocks = 0, blocks_row_stride = 0;
  std::int64_t block_size = 1;         // columns of a candidate block
  std::int64_t sparse_block_size = 1;  // columns of a sparse block
};

struct SparseBlocks {
  std::vector<std::int64_t> blocks;  // [rows, topk_blocks * block_size / sparse_block_size]
  std::vector<std::int64_t> ends;    // [rows], columns of the sparse logits
};

// Throws std::invalid_argument if a start is negative.
inline SparseBlocks expand_candidate_blocks(const CandidateLists& input) {
  const std::int64_t pieces = input.block_size / input.sparse_block_size;
  SparseBlocks result;
  for (std::int64_t row = 0; row < input.rows; ++row) {
    const std::int64_t start = input.row_starts[row], length = input.row_ends[row] - start;
    if (start < 0) throw std::invalid_argument("sparse blocks: a row starts before column 0");
    std::vector<std::int64_t> valid;  // counted from the start
    for (std::int64_t j = 0; j < input.topk_blocks; ++j) {
      const std::int64_t block = input.blocks[row * input.blocks_row_stride + j];
      if (block < 0) continue;
      for (std::int64_t sparse = block * pieces; sparse < (block + 1) * pieces; ++sparse) {
        if (sparse * input.sparse_block_size < length) valid.push_back(sparse);
      }
    }
    std::sort(valid.begin(), valid.end());
    std::int64_t end = 0;
    if (!valid.empty()) {
      const std::int64_t columns_of_last = length - valid.back() * input.sparse_block_size;
      end = (std::ssize(valid) - 1) * input.sparse_block_size +
            std::min(columns_of_last, input.sparse_block_size);
    }
    result.ends.push_back(end);
    valid.resize(static_cast<std::size_t>(input.topk_blocks * pieces),
                 valid.empty() ? 0 : valid.back());
    const std::int64_t first = start / input.sparse_block_size;
    for (const std::int64_t sparse : valid) result.blocks.push_back(first + sparse);
  }
  return result;
}

}  // namespace plumb::reference
