// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/v32_paged_metadata.h"

#include <algorithm>

namespace plumb::reference {

void v32_paged_metadata(const QueryLayout& queries, std::int64_t topk, ClearedExtent cleared,
                        PagedBuffers& buffers) {
  // + 1: if the step has more tokens than the buffer, at() throws below.
  const std::vector<QueryToken> tokens =
      query_tokens(queries, std::ssize(buffers.req_id_per_token) + 1);
  std::vector<std::int64_t> lengths(buffers.req_id_per_token.size(), 0);
  for (std::int64_t t = 0; t < std::ssize(tokens); ++t) {
    buffers.req_id_per_token.at(t) = tokens[t].request;
    const bool has_context = queries.seq_lens[tokens[t].request] > 0;
    lengths.at(t) = has_context ? std::min(tokens[t].position + 1, topk) : 0;
  }
  buffers.paged_kv_indptr = prefix_sums(lengths);

  const std::int64_t entries =
      cleared == ClearedExtent::n_topk ? std::ssize(tokens) * topk : buffers.paged_kv_indptr.back();
  const bool full = cleared == ClearedExtent::full_fill;
  const std::int64_t ids = full ? std::ssize(buffers.req_id_per_token) : buffers.extents[0];
  const std::int64_t last = full ? std::ssize(buffers.paged_kv_indices) : buffers.extents[1];
  for (std::int64_t t = std::ssize(tokens); t < ids; ++t) buffers.req_id_per_token.at(t) = 0;
  for (std::int64_t i = full ? 0 : entries; i < last; ++i) buffers.paged_kv_indices.at(i) = 0;
  buffers.extents = {std::ssize(tokens), entries};
}

}  // namespace plumb::reference
