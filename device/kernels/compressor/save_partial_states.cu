// SPDX-License-Identifier: Apache-2.0
//
// save_partial_states: block t takes token t, thread i the columns i, i + block, ... of its state.
// Legal launch: grid_x = tokens, any block.
#include <plumb/ops/compressor.h>

#include "device/kernels/bf16.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_save_partial_states_params;

PLUMB_DEVICE std::uint8_t* state_row(const plumb_state_cache& state, std::int64_t slot) {
  const std::int64_t block = slot / state.rows, row = slot % state.rows;
  return static_cast<std::uint8_t*>(state.data) + block * state.block_stride_bytes +
         row * state.row_stride_bytes;
}

PLUMB_DEVICE void store_state(std::uint8_t* to, std::int64_t column, float value,
                              plumb_state_form form) {
  if (form == PLUMB_STATE_RAW_BF16) {
    reinterpret_cast<std::uint16_t*>(to)[column] = store_bf16(value);
  } else {
    reinterpret_cast<float*>(to)[column] = value;
  }
}

PLUMB_KERNEL void save_partial_states_kernel(Params p) {
  const std::int64_t token = block_index_x(), slot = p.slot_mapping[token];
  if (slot < 0) return;
  const float* kv = p.kv + token * p.kv_row_stride;
  const float* score = p.score + token * p.score_row_stride;
  const bool biased = p.form == PLUMB_STATE_BIASED;
  const float* ape = biased ? p.ape + p.positions[token] % p.ratio * p.width : nullptr;
  std::uint8_t* to = state_row(p.states, slot);
  for (std::int64_t i = thread_index(); i < p.width; i += block_size()) {
    store_state(to, i, kv[i], p.form);
    store_state(to, p.width + i, biased ? score[i] + ape[i] : score[i], p.form);
  }
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.width < 1 || p.ratio < 1 || p.states.rows < 1) return false;
  const std::int64_t element = p.form == PLUMB_STATE_RAW_BF16 ? 2 : 4;
  const std::int64_t row_bytes = p.states.row_stride_bytes,
                     block_bytes = p.states.block_stride_bytes;
  if (row_bytes < 2 * p.width * element || row_bytes % element != 0) return false;
  if (block_bytes < p.states.rows * row_bytes || block_bytes % element != 0) return false;
  if (p.kv_row_stride < p.width || p.score_row_stride < p.width) return false;
  if (p.tokens == 0) return true;
  const bool has_ape = p.form != PLUMB_STATE_BIASED || (p.ape && p.positions);
  return p.kv && p.score && p.slot_mapping && p.states.data && has_ape;
}

plumb_status launch_save_partial_states(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (p.tokens > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(save_partial_states_kernel, row_shape(p.tokens, p.width, p.stream), p.stream,
                      p);
}

}  // namespace

OpEntry save_partial_states() {
  return {"save_partial_states", launch_save_partial_states, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
