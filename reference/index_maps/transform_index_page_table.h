// SPDX-License-Identifier: Apache-2.0
//
// transform_index_page_table (operations' specification, 3.4): the slots of each token's top-k
// indices, by a page table. The definition follows SGLang's transforms: that of V3.2
// (python/sglang/srt/layers/attention/nsa/transform_index.py), and the one at the end of V4's top-k
// kernel (python/sglang/jit_kernel/csrc/deepseek_v4/topk_v2.cuh).
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

struct SelectedIndices {
  const std::int32_t* topk_indices = nullptr;  // [tokens, topk]; < 0: none
  const std::int32_t* seq_lens = nullptr;      // [tokens]; null: all indices are selected ones
  const std::int32_t* cu_seqlens_q = nullptr;  // [requests + 1]; null: a row of the table per token
  std::int64_t tokens = 0, topk = 0, requests = 0, row_stride = 0;
  BlockTable page_table;

  // Row of the page table that a token uses, -1 behind the last request.
  std::int64_t table_row(std::int64_t token) const;
  // The index that stands in a token's column, before the conversion.
  std::int64_t index_of(std::int64_t token, std::int64_t column) const;
};

struct PageIndices {
  std::vector<std::int64_t> slots;  // [tokens, topk]; -1: none
  std::vector<std::int64_t> raw;    // [tokens, topk]
};

// Throws std::out_of_range for an index that the page table does not cover.
PageIndices transform_index_page_table(const SelectedIndices& input);

}  // namespace plumb::reference
