// SPDX-License-Identifier: Apache-2.0
//
// inverse_rope: block b takes token b; its threads share the pairs of all heads, and each thread
// overwrites only what it alone has read. Launch: block of 256, grid (tokens).
#include <plumb/ops/norm.h>

#include "device/kernels/norm/rope.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_KERNEL void inverse_rope_kernel(plumb_inverse_rope_params p) {
  const std::int64_t token = block_index_x();
  const std::int64_t pairs = p.heads * kRopePairs;
  for (std::int64_t i = thread_index(); i < pairs; i += block_size()) {
    const std::int64_t head = i / kRopePairs;
    const int pair = static_cast<int>(i % kRopePairs);
    const Turn turn = turn_of(p.cos_sin, p.positions[token], pair);
    std::uint16_t* x = p.x + token * p.x_token_stride + head * kHeadDim + kNopeDim + 2 * pair;
    const Pair back = rotate_back({load_bf16(x[0]), load_bf16(x[1])}, turn);
    x[0] = store_bf16(back.even);
    x[1] = store_bf16(back.odd);
  }
}

inline plumb_status launch_inverse_rope(const void* params) {
  constexpr int kBlock = 256;
  const auto& p = *static_cast<const plumb_inverse_rope_params*>(params);
  if (p.tokens < 0 || p.heads < 1 || p.x_token_stride < p.heads * kHeadDim) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.positions || !p.cos_sin) return PLUMB_INVALID_ARGUMENT;
  return PLUMB_LAUNCH(inverse_rope_kernel, (LaunchShape{p.tokens, 1, kBlock, 0}), p.stream, p);
}

OpEntry inverse_rope() {
  return {"inverse_rope",
          launch_inverse_rope,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_F32,
           .function_ulp = 2.0f,
           .deterministic = 1}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
