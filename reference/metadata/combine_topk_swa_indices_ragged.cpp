// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/combine_topk_swa_indices_ragged.h"

#include <algorithm>
#include <stdexcept>

namespace plumb::reference {

namespace {

void append_states(const ChunkLists& input, std::int64_t token, const QueryToken& query,
                   std::vector<std::int64_t>& flat) {
  const std::int64_t count = std::min((query.position + 1) / input.ratio, input.top_k);
  for (std::int64_t j = 0; j < count; ++j) {
    if (j >= input.topk_width) {
      flat.push_back(kMissingState);
      continue;
    }
    const std::int64_t state = input.topk_indices[token * input.topk_indices_row_stride + j];
    const bool kept = state < 0 && !input.shift_minus_one;
    flat.push_back(kept ? -1 : input.rows_per_request * query.request + state);
  }
}

void append_window(const ChunkLists& input, const QueryToken& query,
                   std::vector<std::int64_t>& flat) {
  const std::int64_t first_gathered =
      std::int64_t{input.queries.seq_lens[query.request]} - input.gather_lens[query.request];
  const std::int64_t start = std::max<std::int64_t>(query.position + 1 - input.window, 0);
  if (start < first_gathered) throw std::out_of_range("a row of the window was not gathered");
  const std::int64_t region = input.rows_per_request * query.request + input.compressed_rows;
  for (std::int64_t position = start; position <= query.position; ++position) {
    flat.push_back(region + position - first_gathered);
  }
}

}  // namespace

RaggedSlots combine_topk_swa_indices_ragged(const ChunkLists& input) {
  RaggedSlots out;
  const std::vector<QueryToken> queries = query_tokens(input.queries, input.tokens);
  for (std::int64_t token = 0; token < input.tokens; ++token) {
    const std::int64_t before = std::ssize(out.flat);
    if (token < std::ssize(queries)) {
      append_states(input, token, queries[token], out.flat);
      append_window(input, queries[token], out.flat);
    }
    out.lens.push_back(std::ssize(out.flat) - before);
  }
  out.indptr = prefix_sums(out.lens);
  return out;
}

std::int64_t prefill_gather_len(std::int64_t seq_len, std::int64_t query_len, std::int64_t window) {
  return query_len + std::min(seq_len - query_len, window - 1);
}

}  // namespace plumb::reference
