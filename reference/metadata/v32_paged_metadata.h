// SPDX-License-Identifier: Apache-2.0
//
// v32_paged_metadata (operations' specification, 3.1 and 3.2): the persistent buffers that V3.2 on
// ROCm updates before each step.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

// Buffers that live as long as the metadata builder.
struct PagedBuffers {
  std::vector<std::int64_t> req_id_per_token;  // [max_tokens]
  std::vector<std::int64_t> paged_kv_indptr;   // [max_tokens + 1]
  std::vector<std::int64_t> paged_kv_indices;  // [max_tokens * topk]
  // Of the latest step: its tokens, and its entries or (`n_topk`) tokens * topk.
  std::vector<std::int64_t> extents;
};

// Which elements become 0. `full_fill`: all except the request ids of the step. `n_topk`,
// `entries`: only elements that the step before used and this step does not. The used indices of a
// step are its entries (`entries`), or topk for each token (`n_topk`).
enum class ClearedExtent { full_fill, n_topk, entries };

// Writes the request ids and indptr of the step, and the zeros that `cleared` names. All other
// elements stay unchanged. Throws std::out_of_range if the step does not fit.
void v32_paged_metadata(const QueryLayout& queries, std::int64_t topk, ClearedExtent cleared,
                        PagedBuffers& buffers);

}  // namespace plumb::reference
