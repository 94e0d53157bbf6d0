// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/fp8_paged_mqa_logits.h"

#include <cstring>
#include <utility>
#include <vector>

namespace plumb::reference {

namespace {

using Entries = std::vector<CacheEntry>;  // one for each token of a block

Entries entries_of(const IndexerCacheLayout& layout) {
  Entries entries;
  for (std::int64_t i = 0; i < layout.page; ++i) entries.push_back(indexer_k_entry(layout, i));
  return entries;
}

// Appends the numbers and the scale of a token.
void append_token(const Fp8PagedMqaLogits& inputs, const Entries& entries, std::int64_t request,
                  std::int64_t position, std::vector<double>& numbers,
                  std::vector<double>& scales) {
  const std::int64_t page = inputs.layout.page;
  const CacheEntry& entry = entries[static_cast<std::size_t>(position % page)];
  const std::uint8_t* block = block_of(inputs, request, position, page);
  for (const std::int64_t at : entry.codes) {
    numbers.push_back(decode_e4m3(block[at], inputs.cache_dialect));
  }
  float scale = 0;
  std::memcpy(&scale, block + entry.scales.front(), sizeof scale);
  scales.push_back(scale);
}

void score_request(const Fp8PagedMqaLogits& inputs, const Entries& entries,
                   const Numerics& numerics, std::int64_t request, Estimate& estimate) {
  std::vector<double> of_keys, scales;
  for (std::int64_t i = 0; i < longest_context(inputs, request); ++i) {
    append_token(inputs, entries, request, i, of_keys, scales);
  }
  const IndexerKeys keys =
      indexer_keys(std::move(of_keys), std::move(scales), inputs.scaled_keys, numerics);
  const std::int64_t first_row = request * inputs.next_n, numbers = inputs.heads * inputs.dim;
  for (std::int64_t row = first_row; row < first_row + inputs.next_n; ++row) {
    std::vector<double> queries;
    append_fp8(inputs.q + row * numbers, numbers, inputs.q_dialect, queries);
    score_keys(std::move(queries), inputs.weights + row * inputs.heads, inputs.heads, keys,
               {0, context_length(inputs, row)}, numerics, row, 0, estimate);
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
