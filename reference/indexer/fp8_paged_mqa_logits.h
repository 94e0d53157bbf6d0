// SPDX-License-Identifier: Apache-2.0
//
// fp8_paged_mqa_logits (operations' specification, 5.1 and 5.3): next_n query rows of each request
// score the tokens of its context, which lie in a paged cache.
#pragma once

#include "reference/cache/indexer_k_quant_and_cache.h"
#include "reference/indexer/mqa_logits.h"

namespace plumb::reference {

struct Fp8PagedMqaLogits {
  const std::uint8_t* q = nullptr;  // fp8 [requests, next_n, heads, dim]
  const float* weights = nullptr;   // [requests * next_n, heads]
  const std::int32_t* context_lens = nullptr;
  std::int64_t context_lens_row_stride = 1;  // elements between requests
  std::int32_t context_lens_dims = 2;
  const std::uint8_t* cache = nullptr;
  std::int64_t block_stride_bytes = 0;
  IndexerCacheLayout layout;                  // one scale per token
  const std::int32_t* block_table = nullptr;  // [requests, block_table_row_stride]
  std::int64_t block_table_row_stride = 0;
  std::int64_t requests = 0, next_n = 1, heads = 0, dim = 0;
  std::int64_t max_context_len = 0;
  std::int64_t columns = 0;  // of the stored rows, padding included
  bool clean = false;        // columns from the length to max_context_len are -inf
  bool scaled_keys = false;  // a token's scale multiplies its key in front of the product
  Dialect q_dialect = Dialect::e4m3fn, cache_dialect = Dialect::e4m3fn;
};

// Tokens that a row scores: 2-D lengths as they are, 1-D ones less next_n - 1 - query; never below
// 0.
std::int64_t context_length(const Fp8PagedMqaLogits& inputs, std::int64_t row);
// fp32 [requests * next_n, columns]; zero where nothing is specified.
Estimate fp8_paged_mqa_logits(const Fp8PagedMqaLogits& inputs, const Numerics& numerics);

}  // namespace plumb::reference
