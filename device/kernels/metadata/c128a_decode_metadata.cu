// SPDX-License-Identifier: Apache-2.0
//
// c128a_decode_metadata: for a decode token the slots of all compressed states that it sees, for a
// prefill token their positions. Block t takes token t, decode tokens first; its threads share the
// columns. Legal launch: grid_x = decode_tokens + prefill_tokens, any block.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_c128a_decode_metadata_params;

constexpr std::int64_t kC128aRatio = 128;

PLUMB_DEVICE std::int64_t states_of(const Params& p, std::int64_t token) {
  const std::int64_t states = (p.positions[token] + 1) / kC128aRatio;
  return states < p.max_compressed ? states : p.max_compressed;
}

// A token without a slot is padding. Its position is undefined, so no block is looked up for it.
PLUMB_DEVICE void write_decode_row(const Params& p, std::int64_t token) {
  const std::int64_t states = p.slot_mapping[token] >= 0 ? states_of(p, token) : 0;
  const std::int32_t* blocks = p.block_table + p.token_to_req[token] * p.block_table_row_stride;
  std::int32_t* slots = p.decode_slots + token * p.decode_slots_row_stride;
  for (std::int64_t j = thread_index(); j < p.max_compressed; j += block_size()) {
    slots[j] = j < states ? slot_of(blocks, p.block_size, j) : kNoIndex;
  }
  if (thread_index() == 0) p.decode_lens[token] = static_cast<std::int32_t>(states);
}

PLUMB_KERNEL void c128a_metadata_kernel(Params p) {
  const std::int64_t token = block_index_x();
  if (token < p.decode_tokens) return write_decode_row(p, token);
  const std::int64_t states = states_of(p, token);
  std::int32_t* local =
      p.prefill_indices + (token - p.decode_tokens) * p.prefill_indices_row_stride;
  for (std::int64_t j = thread_index(); j < p.max_compressed; j += block_size()) {
    local[j] = j < states ? static_cast<std::int32_t>(j) : kNoIndex;
  }
}

bool is_legal(const Params& p) {
  if (p.decode_tokens < 0 || p.prefill_tokens < 0) return false;
  if (p.max_compressed < 1 || p.block_size < 1) return false;
  if (p.decode_tokens + p.prefill_tokens == 0) return true;
  if (!p.positions || !p.slot_mapping || !p.token_to_req) return false;
  if (p.decode_tokens > 0 && (!p.block_table || !p.decode_slots || !p.decode_lens)) return false;
  return p.prefill_tokens == 0 || p.prefill_indices;
}

plumb_status launch_c128a_decode_metadata(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  const std::int64_t tokens = p.decode_tokens + p.prefill_tokens;
  if (tokens == 0) return PLUMB_OK;
  if (tokens > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(c128a_metadata_kernel, row_shape(tokens, p.max_compressed, p.stream),
                      p.stream, p);
}

}  // namespace

OpEntry c128a_decode_metadata() {
  return {"c128a_decode_metadata", launch_c128a_decode_metadata, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
