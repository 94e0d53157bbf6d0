// SPDX-License-Identifier: Apache-2.0
//
// v32_paged_metadata (operations' specification, 3.1 and 3.2): what V3.2 on ROCm refreshes in its
// persistent buffers before each step.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

// Buffers that live as long as the builder.
struct PagedBuffers {
  std::vector<std::int64_t> req_id_per_token;  // [max_tokens]
  std::vector<std::int64_t> paged_kv_indptr;   // [max_tokens + 1]
  std::vector<std::int64_t> paged_kv_indices;  // [max_tokens * topk]
  std::vector<std::int64_t> extents;           // tokens and entries of the latest step
};

// What becomes 0: everything but the request ids of the step, or what the step before reached
// beyond this one. The extent of the indices is that of the entries, or topk for each token.
enum class ClearedExtent { full_fill, n_topk, entries };

// Request ids and indptr of the step. Nothing else of req_id_per_token and paged_kv_indices changes
// but what becomes 0. Throws std::out_of_range where the step does not fit.
void v32_paged_metadata(const QueryLayout& queries, std::int64_t topk, ClearedExtent cleared,
                        PagedBuffers& buffers);

}  // namespace plumb::reference
