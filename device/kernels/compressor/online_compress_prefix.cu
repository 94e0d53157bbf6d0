// SPDX-License-Identifier: Apache-2.0
//
// online_compress_prefix: block r takes request r, thread i the channels i, i + block, ... of all
// its tokens, one after the other. Legal launch: grid_x = requests, any block.
#include "device/kernels/compressor/online_state.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using OnlinePrefix = plumb_online_compress_prefix_params;

PLUMB_KERNEL void online_compress_prefix_kernel(OnlinePrefix p) {
  const std::int64_t request = block_index_x(), row = p.request_rows[request];
  const std::int64_t length = p.seq_lens[request];
  if (length < 0 || row < 0 || row >= p.bank_rows) return;
  for (std::int64_t d = thread_index(); d < p.head_dim; d += block_size()) {
    OnlineChannel state = load_channel(p.states, row, p.head_dim, d);
    for (std::int64_t j = 0; j < p.verify_tokens; ++j) {
      const std::int64_t phase = (length + j) % kGroupPositions;
      state = appended_token(p, state, request * p.verify_tokens + j, phase, d);
      // The state of a closed group is not stored.
      if (phase == kGroupPositions - 1) continue;
      store_channel(state, p.states, row + (j + 1) * p.bank_rows, p.head_dim, d);
    }
  }
}

bool is_legal_prefix(const OnlinePrefix& p) {
  if (!has_legal_banks(p)) return false;
  if (p.kv_row_stride < p.head_dim || p.score_row_stride < p.head_dim) return false;
  if (p.requests == 0) return true;
  return p.kv && p.score && p.ape && p.seq_lens && p.request_rows && p.states.data;
}

plumb_status launch_online_compress_prefix(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const OnlinePrefix*>(params);
  if (!is_legal_prefix(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.requests == 0) return PLUMB_OK;
  if (p.requests > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(online_compress_prefix_kernel, row_shape(p.requests, p.head_dim, p.stream),
                      p.stream, p);
}

}  // namespace

OpEntry online_compress_prefix() {
  return {"online_compress_prefix", launch_online_compress_prefix, kOnlineNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
