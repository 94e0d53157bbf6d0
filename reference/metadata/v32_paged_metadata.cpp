// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/v32_paged_metadata.h"

#include <algorithm>

namespace plumb::reference {

void v32_paged_metadata(const QueryLayout& queries, std::int64_t topk, PagedBuffers& buffers) {
  const std::vector<QueryToken> tokens = query_tokens(queries);
  std::vector<std::int64_t> lengths(buffers.req_id_per_token.size(), 0);
  for (std::int64_t t = 0; t < std::ssize(tokens); ++t) {
    buffers.req_id_per_token.at(t) = tokens[t].request;
    const bool has_context = queries.seq_lens[tokens[t].request] > 0;
    lengths.at(t) = has_context ? std::min(tokens[t].position + 1, topk) : 0;
  }
  buffers.paged_kv_indptr = prefix_sums(lengths);

  const std::int64_t entries = buffers.paged_kv_indptr.back();
  for (std::int64_t t = std::ssize(tokens); t < buffers.extents[0]; ++t) {
    buffers.req_id_per_token.at(t) = 0;
  }
  for (std::int64_t i = entries; i < buffers.extents[1]; ++i) buffers.paged_kv_indices.at(i) = 0;
  buffers.extents = {std::ssize(tokens), entries};
}

}  // namespace plumb::reference
