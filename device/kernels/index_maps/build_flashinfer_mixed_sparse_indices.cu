// SPDX-License-Identifier: Apache-2.0
//
// build_flashinfer_mixed_sparse_indices: the slots that FlashInfer's sparse MLA reads, first those
// of the window, then those of compressed states. Wave t takes token t, as many columns at a time
// as it has lanes. Legal launch: grid_x = decode and prefill tokens, one whole wave.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_build_flashinfer_mixed_sparse_indices_params;

// A slot, which counts `size` from one block to the next, in a cache that has `span` in between.
PLUMB_DEVICE std::int32_t spanned(std::int64_t slot, std::int64_t size, std::int64_t span) {
  if (slot < 0) return static_cast<std::int32_t>(slot);
  return static_cast<std::int32_t>(slot / size * span + slot % size);
}

PLUMB_DEVICE std::int32_t swa_slot(const Params& p, std::int64_t request, std::int64_t position) {
  const std::int32_t* blocks = p.swa_block_table + request * p.swa_block_table_row_stride;
  return spanned(slot_of(blocks, p.swa_block_size, position), p.swa_block_size, p.swa_block_span);
}

// -1 for a state below 0.
PLUMB_DEVICE std::int32_t state_slot(const Params& p, std::int64_t request, std::int64_t state) {
  if (state < 0) return kNoIndex;
  const std::int32_t* blocks =
      p.compressed_block_table + request * p.compressed_block_table_row_stride;
  const std::int32_t slot = slot_of(blocks, p.compressed_block_size, state);
  return spanned(slot, p.compressed_block_size, p.compressed_block_span);
}

PLUMB_DEVICE void write_decode_row(const Params& p, std::int64_t token, std::int32_t* out) {
  const std::int32_t* swa = p.decode_swa_indices + token * p.decode_swa_row_stride;
  for (std::int64_t j = lane_index(); j < p.window; j += wave_size()) {
    out[j] = spanned(swa[j], p.swa_block_size, p.swa_block_span);
  }
  const std::int32_t* chosen = p.decode_compressed_indices + token * p.decode_compressed_row_stride;
  const bool local = p.decode_is_valid_token != nullptr;
  std::int32_t found = 0;
  for (std::int64_t j = lane_index(); j < p.width - p.window; j += wave_size()) {
    const std::int32_t index = j < p.decode_topk ? chosen[j] : kNoIndex;
    out[p.window + j] = local ? state_slot(p, p.token_to_req[token], index)
                              : spanned(index, p.compressed_block_size, p.compressed_block_span);
    if (index >= 0) ++found;
  }
  std::int64_t length = p.decode_topk;
  if (length > 0 && p.decode_compressed_lens != nullptr) length = p.decode_compressed_lens[token];
  if (local) length = p.decode_is_valid_token[token] != 0 ? wave_sum(found) : 0;
  if (lane_index() == 0) {
    p.sparse_topk_lens[token] = static_cast<std::int32_t>(p.window + length);
  }
}

PLUMB_DEVICE void write_prefill_row(const Params& p, std::int64_t token, std::int32_t* out) {
  const std::int64_t request = p.token_to_req[token];
  const std::int64_t position = position_of(p.query_start_loc, p.seq_lens, request, token);
  const std::int64_t start = position < p.window ? 0 : position - p.window + 1;
  for (std::int64_t j = lane_index(); j < p.window; j += wave_size()) {
    out[j] = start + j <= position ? swa_slot(p, request, start + j) : kNoIndex;
  }
  std::int64_t states = (position + 1) / p.ratio;
  if (states > p.top_k) states = p.top_k;
  const std::int32_t* chosen =
      p.prefill_topk_indices + (token - p.decode_tokens) * p.prefill_topk_row_stride;
  for (std::int64_t j = lane_index(); j < p.width - p.window; j += wave_size()) {
    out[p.window + j] = state_slot(p, request, j < states ? chosen[j] : kNoIndex);
  }
  if (lane_index() == 0) {
    p.sparse_topk_lens[token] = static_cast<std::int32_t>(p.window + states);
  }
}

PLUMB_KERNEL void mixed_indices_kernel(Params p) {
  const std::int64_t token = block_index_x();
  std::int32_t* out = p.sparse_indices + token * p.sparse_indices_row_stride;
  if (token < p.decode_tokens) {
    write_decode_row(p, token, out);
  } else if (token < token_count(p.query_start_loc, p.requests)) {
    write_prefill_row(p, token, out);
  }
}

bool has_legal_sizes(const Params& p) {
  const std::int64_t states = p.top_k > p.decode_topk ? p.top_k : p.decode_topk;
  if (p.decode_tokens < 0 || p.prefill_tokens < 0 || p.requests < 0) return false;
  if (p.window < 1 || p.ratio < 1 || p.top_k < 0 || p.decode_topk < 0) return false;
  if (p.width < p.window + states || p.sparse_indices_row_stride < p.width) return false;
  if (p.swa_block_size < 1 || p.swa_block_span < p.swa_block_size) return false;
  return p.compressed_block_size >= 1 && p.compressed_block_span >= p.compressed_block_size;
}

bool has_needed_tensors(const Params& p) {
  const bool local = p.decode_is_valid_token != nullptr;
  if (local && (p.decode_topk == 0 || p.decode_compressed_lens)) return false;
  if (p.top_k + (local ? p.decode_topk : 0) > 0 && !p.compressed_block_table) return false;
  if (p.decode_tokens + p.prefill_tokens == 0) return true;
  if (p.decode_tokens > 0 && !p.decode_swa_indices) return false;
  if (p.decode_tokens > 0 && p.decode_topk > 0 && !p.decode_compressed_indices) return false;
  if (p.prefill_tokens > 0 && p.top_k > 0 && !p.prefill_topk_indices) return false;
  return p.query_start_loc && p.seq_lens && p.token_to_req && p.swa_block_table &&
         p.sparse_indices && p.sparse_topk_lens;
}

plumb_status launch_mixed_indices(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!has_legal_sizes(p) || !has_needed_tensors(p)) return PLUMB_INVALID_ARGUMENT;
  const std::int64_t tokens = p.decode_tokens + p.prefill_tokens;
  if (tokens == 0) return PLUMB_OK;
  const Properties& device = stream_properties(p.stream);
  if (tokens > device.max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape one_wave{tokens, 1, device.wave_size, 0};
  return PLUMB_LAUNCH(mixed_indices_kernel, one_wave, p.stream, p);
}

}  // namespace

OpEntry build_flashinfer_mixed_sparse_indices() {
  return {"build_flashinfer_mixed_sparse_indices", launch_mixed_indices, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
