// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/v32_paged_kv_indices.h"

namespace plumb::reference {

void v32_paged_kv_indices(const PagedTopK& input, std::vector<std::int64_t>& paged_kv_indices) {
  for (std::int64_t token = 0; token < input.tokens; ++token) {
    const std::int64_t begin = input.paged_kv_indptr[token];
    for (std::int64_t i = begin; i < input.paged_kv_indptr[token + 1]; ++i) {
      const std::int64_t position = input.topk_indices[token * input.row_stride + i - begin];
      const std::int64_t request = input.req_id_per_token[token];
      const bool there = input.block_table.holds(request, position);
      paged_kv_indices.at(i) = there ? input.block_table.slot(request, position) : input.missing;
    }
  }
}

}  // namespace plumb::reference
