// SPDX-License-Identifier: Apache-2.0
#include "reference/index_maps/build_flashinfer_mixed_sparse_indices.h"

#include <algorithm>
#include <stdexcept>

namespace plumb::reference {

namespace {

// The result's row and length of one decode token. `row` comes filled with -1.
std::int64_t decode_row(const MixedBatch& batch, std::int64_t token, std::int64_t* row) {
  const std::int32_t* swa = batch.decode_swa_indices + token * batch.decode_swa_row_stride;
  for (std::int64_t j = 0; j < batch.window; ++j) row[j] = batch.swa.spanned(swa[j]);
  const bool local = batch.decode_is_valid_token != nullptr;
  const bool valid = local && batch.decode_is_valid_token[token] != 0;
  const std::int32_t* chosen =
      batch.decode_compressed_indices + token * batch.decode_compressed_row_stride;
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < batch.decode_topk; ++j) {
    if (chosen[j] < 0 || (local && !valid)) continue;
    row[batch.window + j] = local ? batch.compressed.slot_of(batch.token_to_req[token], chosen[j])
                                  : batch.compressed.spanned(chosen[j]);
    ++count;
  }
  if (local) return batch.window + count;
  const bool counted = batch.decode_compressed_lens != nullptr && batch.decode_topk > 0;
  return batch.window + (counted ? batch.decode_compressed_lens[token] : batch.decode_topk);
}

std::int64_t prefill_row(const MixedBatch& batch, std::int64_t token, std::int64_t* row) {
  const std::int64_t request = batch.token_to_req[token];
  if (request < 0 || request >= batch.queries.requests) {
    throw std::out_of_range("a token of a request that the batch does not have");
  }
  const std::int32_t* starts = batch.queries.query_start_loc;
  const std::int64_t from_end = std::int64_t{starts[request + 1]} - starts[0] - token;
  const std::int64_t position = batch.queries.seq_lens[request] - from_end;
  const std::int64_t start = std::max<std::int64_t>(position - batch.window + 1, 0);
  for (std::int64_t p = start; p <= position; ++p) {
    row[p - start] = batch.swa.slot_of(request, p);
  }
  const std::int64_t states = std::min((position + 1) / batch.ratio, batch.top_k);
  const std::int32_t* chosen =
      batch.prefill_topk_indices + (token - batch.decode_tokens) * batch.prefill_topk_row_stride;
  for (std::int64_t j = 0; j < states; ++j) {
    if (chosen[j] >= 0) row[batch.window + j] = batch.compressed.slot_of(request, chosen[j]);
  }
  return batch.window + states;
}

}  // namespace

std::int64_t SpannedCache::spanned(std::int64_t slot) const {
  if (slot < 0) return slot == -1 ? -1 : kAnyNegative;
  return slot / table.block_size * block_span + slot % table.block_size;
}

std::int64_t SpannedCache::slot_of(std::int64_t request, std::int64_t position) const {
  const std::int64_t slot = table.slot(request, position);
  return slot < 0 ? kAnyNegative : spanned(slot);
}

bool MixedBatch::has_length(std::int64_t token) const {
  return token < decode_tokens || token < queries.tokens();
}

bool MixedBatch::has_row(std::int64_t token) const {
  if (token >= decode_tokens) return has_length(token);
  return decode_is_valid_token == nullptr || decode_is_valid_token[token] != 0;
}

MixedIndices build_flashinfer_mixed_sparse_indices(const MixedBatch& batch) {
  MixedIndices out;
  out.indices.assign(static_cast<std::size_t>(batch.tokens() * batch.width), -1);
  out.lens.assign(static_cast<std::size_t>(batch.tokens()), 0);
  for (std::int64_t token = 0; token < batch.tokens(); ++token) {
    if (!batch.has_length(token)) continue;
    std::int64_t* row = out.indices.data() + token * batch.width;
    out.lens[token] = token < batch.decode_tokens ? decode_row(batch, token, row)
                                                  : prefill_row(batch, token, row);
  }
  return out;
}

}  // namespace plumb::reference
