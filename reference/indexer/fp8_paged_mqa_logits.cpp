// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/fp8_paged_mqa_logits.h"

#include <cstring>

namespace plumb::reference {

namespace {

using Entries = std::vector<CacheEntry>;  // one for each token of a block

Entries entries_of(const IndexerCacheLayout& layout) {
  Entries entries;
  for (std::int64_t i = 0; i < layout.page; ++i) entries.push_back(indexer_k_entry(layout, i));
  return entries;
}

void decode_token(const Fp8PagedMqaLogits& inputs, const Entries& entries, std::int64_t request,
                  std::int64_t position, IndexerKeys& keys) {
  const std::int64_t page = inputs.layout.page;
  const CacheEntry& entry = entries[static_cast<std::size_t>(position % page)];
  const std::uint8_t* block = block_of(inputs, request, position, page);
  if (inputs.layout.shuffled) {
    std::vector<std::uint8_t> codes;
    for (const std::int64_t at : entry.codes) codes.push_back(block[at]);
    keys.vectors.decode(position, codes.data(), inputs.cache_dialect);
  } else {  // the codes of a token are contiguous
    keys.vectors.decode(position, block + entry.codes.front(), inputs.cache_dialect);
  }
  float scale = 0;
  std::memcpy(&scale, block + entry.scales.front(), sizeof scale);
  keys.scales[static_cast<std::size_t>(position)] = scale;
}

void score_request(const Fp8PagedMqaLogits& inputs, const Entries& entries,
                   const Numerics& numerics, std::int64_t request, Estimate& estimate) {
  const std::int64_t first_row = request * inputs.next_n, last_row = first_row + inputs.next_n;
  const std::int64_t longest = longest_context(inputs, request);
  IndexerKeys keys(inputs.dim, longest);
  keys.scaled = inputs.scaled_keys;
  for (std::int64_t i = 0; i < longest; ++i) decode_token(inputs, entries, request, i, keys);
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const std::int64_t length = context_length(inputs, row);
    if (length > 0) {
      Fp8Vectors queries(inputs.dim, inputs.heads);
      for (std::int64_t head = 0; head < inputs.heads; ++head) {
        queries.decode(head, inputs.q + (row * inputs.heads + head) * inputs.dim, inputs.q_dialect);
      }
      score_keys(queries, inputs.weights + row * inputs.heads, keys, {0, length}, numerics, row, 0,
                 estimate);
    }
    clean_row(inputs, row, estimate);
  }
}

}  // namespace

Estimate fp8_paged_mqa_logits(const Fp8PagedMqaLogits& inputs, const Numerics& numerics) {
  Estimate estimate = empty_logits(inputs.requests * inputs.next_n, inputs.columns);
  const Entries entries = entries_of(inputs.layout);
  parallel_for(inputs.requests, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t request = begin; request < end; ++request) {
      score_request(inputs, entries, numerics, request, estimate);
    }
  });
  return estimate;
}

}  // namespace plumb::reference
