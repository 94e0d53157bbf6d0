// SPDX-License-Identifier: Apache-2.0
//
// mhc_post: the streams after a sublayer, from its output and the mixed residual streams. Block b
// takes token b. Its threads share the columns; each computes eight columns of all four streams.
// Launch: token_shape.
#include "device/kernels/hyper_connection/hyper_connection.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostTokenThreads, 3) void mhc_post_kernel(plumb_mhc_post_params p) {
  store_mixed_streams<whole>(p);
}

plumb_status launch_mhc_post(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_mhc_post_params*>(params);
  if (p.tokens < 0 || p.hidden < 1 || p.out_slot_stride < p.hidden ||
      p.out_token_stride < p.hidden) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.residual || !p.post || !p.comb || !p.out) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  if (p.tokens > device.max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape shape = token_shape(p.tokens, p.hidden, device.wave_size);
  if (is_whole(p)) return PLUMB_LAUNCH(mhc_post_kernel<true>, shape, p.stream, p);
  return PLUMB_LAUNCH(mhc_post_kernel<false>, shape, p.stream, p);
}

}  // namespace

OpEntry mhc_post() {
  return {"mhc_post",
          launch_mhc_post,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_F32,
           .function_ulp = 2,
           .deterministic = 1}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
