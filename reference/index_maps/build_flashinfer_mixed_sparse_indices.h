// SPDX-License-Identifier: Apache-2.0
//
// build_flashinfer_mixed_sparse_indices (operations' specification, 2.12): the matrix of slots that
// FlashInfer's sparse MLA reads, of decode tokens and then of prefill tokens. The definition
// follows vLLM's builder (vllm/models/deepseek_v4/common/ops/cache_utils.py).
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

// A paged cache. Slots of the result count `block_span` from one block to the next.
struct SpannedCache {
  BlockTable table;
  std::int64_t block_span = 1;

  // A slot that counts table.block_size from one block to the next, in this cache. -1 stays
  // -1, and other numbers below 0 become kAnyNegative.
  std::int64_t spanned(std::int64_t slot) const;
  // Slot of a request's position; kAnyNegative if its block is negative. Throws std::out_of_range
  // for a position that the table does not cover.
  std::int64_t slot_of(std::int64_t request, std::int64_t position) const;
};

struct MixedBatch {
  const std::int32_t* decode_swa_indices = nullptr;         // [decode_tokens, window]
  const std::int32_t* decode_compressed_indices = nullptr;  // [decode_tokens, decode_topk]
  const std::int32_t* decode_compressed_lens = nullptr;     // [decode_tokens]; null: decode_topk
  const std::uint8_t* decode_is_valid_token = nullptr;  // [decode_tokens]; null: slots are given
  const std::int32_t* prefill_topk_indices = nullptr;   // [prefill_tokens, top_k]
  const std::int32_t* token_to_req = nullptr;           // [decode_tokens + prefill_tokens]
  QueryLayout queries;
  std::int64_t decode_tokens = 0, prefill_tokens = 0;
  std::int64_t decode_swa_row_stride = 0, decode_compressed_row_stride = 0;
  std::int64_t prefill_topk_row_stride = 0;
  std::int64_t window = 1, ratio = 1, top_k = 0, decode_topk = 0;
  std::int64_t width = 1;  // columns of the result
  SpannedCache swa, compressed;

  std::int64_t tokens() const { return decode_tokens + prefill_tokens; }
  // False for a decode token that is no token of the batch, if its compressed positions are given,
  // and for a prefill token behind the last request. Their rows are unspecified.
  bool has_row(std::int64_t token) const;
  bool has_length(std::int64_t token) const;
};

struct MixedIndices {
  std::vector<std::int64_t> indices;  // [tokens, width]; -1: none
  std::vector<std::int64_t> lens;     // [tokens]
};

MixedIndices build_flashinfer_mixed_sparse_indices(const MixedBatch& batch);

}  // namespace plumb::reference
