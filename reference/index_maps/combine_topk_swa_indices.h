// SPDX-License-Identifier: Apache-2.0
//
// combine_topk_swa_indices (operations' specification, 2.9, the dense form): the rows of the
// prefill workspace that each token of a chunk of requests attends to, in a row of a table. The
// definition follows vLLM's combine_topk_swa_indices (vllm/models/deepseek_v4/common/ops/
// cache_utils.py, and the copy of it in amd/rocm.py).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "reference/metadata/combine_topk_swa_indices_ragged.h"

namespace plumb::reference {

struct DenseChunkLists {
  ChunkLists lists;
  const std::int32_t* replay_start = nullptr;   // [requests]; null: all 0
  const std::int32_t* left_visible = nullptr;   // [tokens]; null: all 0
  const std::int32_t* right_visible = nullptr;  // [tokens]; null: all 0
  std::int64_t width = 0;                       // columns of the result
  bool check_bounds = false;                    // states from compressed_rows on become -1
  bool repeat_column_0 = true;  // in place of a column that the top-k table lacks; else -1
};

// Marks an element that has no value: behind the last entry of a row, or the length of a token that
// belongs to no request.
inline constexpr std::int64_t kNoEntry = std::numeric_limits<std::int64_t>::min();

struct DenseLists {
  std::vector<std::int64_t> indices;  // [tokens, width]
  std::vector<std::int64_t> lens;     // [tokens]
};

// Throws std::out_of_range if a row of the window was not gathered, or if a token has more entries
// than columns.
DenseLists combine_topk_swa_indices(const DenseChunkLists& input);

}  // namespace plumb::reference
