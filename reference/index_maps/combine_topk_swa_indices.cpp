// SPDX-License-Identifier: Apache-2.0
#include "reference/index_maps/combine_topk_swa_indices.h"

#include <algorithm>
#include <stdexcept>

namespace plumb::reference {

namespace {

// Workspace row of the token's j-th state.
std::int64_t row_of_state(const DenseChunkLists& input, std::int64_t token, std::int64_t request,
                          std::int64_t j) {
  const ChunkLists& lists = input.lists;
  if (j >= lists.topk_width && !input.repeat_column_0) return -1;
  const std::int64_t column = j < lists.topk_width ? j : 0;
  const std::int64_t state = lists.topk_indices[token * lists.topk_indices_row_stride + column];
  if (state < 0 && !lists.shift_minus_one) return -1;
  if (state >= lists.compressed_rows && input.check_bounds) return -1;
  return lists.rows_per_request * request + state;
}

// First position that a token sees. An image is visible as a whole, up to its first token.
std::int64_t first_visible(const DenseChunkLists& input, std::int64_t token,
                           const QueryToken& query) {
  const std::int64_t left = input.left_visible ? input.left_visible[token] : 0;
  const std::int64_t replay = input.replay_start ? input.replay_start[query.request] : 0;
  const std::int64_t start = query.position - std::max(input.lists.window - 1, left);
  return std::max({start, replay, std::int64_t{0}});
}

std::vector<std::int64_t> entries_of(const DenseChunkLists& input, std::int64_t token,
                                     const QueryToken& query) {
  const ChunkLists& lists = input.lists;
  std::vector<std::int64_t> entries;
  const std::int64_t states = std::min((query.position + 1) / lists.ratio, lists.top_k);
  for (std::int64_t j = 0; j < states; ++j) {
    entries.push_back(row_of_state(input, token, query.request, j));
  }
  const std::int64_t seq_len = lists.queries.seq_lens[query.request];
  const std::int64_t first_gathered = seq_len - lists.gather_lens[query.request];
  const std::int64_t right = input.right_visible ? input.right_visible[token] : 0;
  const std::int64_t region = lists.rows_per_request * query.request + lists.compressed_rows;
  const std::int64_t end = std::min(query.position + right + 1, seq_len);
  for (std::int64_t position = first_visible(input, token, query); position < end; ++position) {
    if (position < first_gathered) throw std::out_of_range("a row of the window was not gathered");
    if (std::ssize(entries) == input.width) throw std::out_of_range("more entries than columns");
    entries.push_back(region + position - first_gathered);
  }
  return entries;
}

}  // namespace

DenseLists combine_topk_swa_indices(const DenseChunkLists& input) {
  const std::int64_t tokens = input.lists.tokens;
  DenseLists out;
  out.indices.assign(static_cast<std::size_t>(tokens * input.width), kNoEntry);
  out.lens.assign(static_cast<std::size_t>(tokens), kNoEntry);
  const std::vector<QueryToken> queries = query_tokens(input.lists.queries, tokens);
  for (std::int64_t token = 0; token < std::ssize(queries); ++token) {
    const std::vector<std::int64_t> entries = entries_of(input, token, queries[token]);
    std::copy(entries.begin(), entries.end(), out.indices.begin() + token * input.width);
    out.lens[token] = std::ssize(entries);
  }
  return out;
}

}  // namespace plumb::reference
