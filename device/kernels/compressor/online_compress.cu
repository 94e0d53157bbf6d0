// SPDX-License-Identifier: Apache-2.0
//
// online_compress: block r takes request r, thread i the channels i, i + block, ... of all its
// tokens, one after the other. Legal launch: grid_x = requests, any block.
#include "device/kernels/compressor/online_state.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using OnlineCompress = plumb_online_compress_params;

// Tokens of one request.
struct RequestTokens {
  std::int64_t first, end, position;  // position: of the first token
};

PLUMB_DEVICE RequestTokens tokens_of(const OnlineCompress& p, std::int64_t request) {
  const std::int64_t first = p.query_start_loc[request], end = p.query_start_loc[request + 1];
  return {first, end, p.seq_lens[request] - (end - first)};
}

// Channel d of the state in front of the tokens.
PLUMB_DEVICE OnlineChannel state_in_front(const OnlineCompress& p, std::int64_t request,
                                          std::int64_t d) {
  const std::int64_t row = p.read_rows[request];
  return row < 0 ? fresh_channel() : load_channel(p.states, row, p.head_dim, d);
}

PLUMB_KERNEL void online_compress_kernel(OnlineCompress p) {
  const std::int64_t request = block_index_x(), write_row = p.write_rows[request];
  const RequestTokens tokens = tokens_of(p, request);
  if (tokens.first >= tokens.end) return;
  for (std::int64_t d = thread_index(); d < p.head_dim; d += block_size()) {
    OnlineChannel state = state_in_front(p, request, d);
    std::int64_t phase = tokens.position % kGroupPositions;
    for (std::int64_t token = tokens.first; token < tokens.end; ++token) {
      state = appended_token(p, state, token, phase, d);
      if (phase == kGroupPositions - 1) p.out[token * p.out_row_stride + d] = state.mean;
      phase = (phase + 1) % kGroupPositions;
    }
    // The state of a closed group is not stored.
    if (write_row >= 0 && phase != 0) store_channel(state, p.states, write_row, p.head_dim, d);
  }
}

bool is_legal(const OnlineCompress& p) {
  if (!has_legal_states(p) || p.tokens < 0) return false;
  if (p.kv_row_stride < p.head_dim || p.score_row_stride < p.head_dim) return false;
  if (p.out_row_stride < p.head_dim) return false;
  if (p.requests == 0 || p.tokens == 0) return true;
  return p.kv && p.score && p.ape && p.query_start_loc && p.seq_lens && p.read_rows &&
         p.write_rows && p.states.data && p.out;
}

plumb_status launch_online_compress(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const OnlineCompress*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.requests == 0 || p.tokens == 0) return PLUMB_OK;
  if (p.requests > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(online_compress_kernel, row_shape(p.requests, p.head_dim, p.stream), p.stream,
                      p);
}

}  // namespace

OpEntry online_compress() { return {"online_compress", launch_online_compress, kOnlineNumerics}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
