// SPDX-License-Identifier: Apache-2.0
//
// inverse_rope: block b takes token b; its threads share the pairs of all heads. A thread
// overwrites only elements that it alone has read. If the output is another tensor, threads also
// copy the dimensions without RoPE. Launch: block of 256, grid (tokens).
#include <plumb/ops/norm.h>

#include "device/kernels/norm/rope.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_KERNEL void inverse_rope_kernel(plumb_inverse_rope_params p) {
  const std::int64_t token = block_index_x();
  const std::int64_t pairs = p.heads * kRopePairs;
  const std::uint16_t* from = p.x + token * p.x_token_stride;
  std::uint16_t* to = p.out + token * p.out_token_stride;
  for (std::int64_t i = thread_index(); i < pairs; i += block_size()) {
    const std::int64_t head = i / kRopePairs;
    const int pair = static_cast<int>(i % kRopePairs);
    const Turn turn = turn_of(p.cos_sin, p.positions[token], pair);
    const int dim = kNopeDim + 2 * pair;
    const std::uint16_t* x = from + head * kHeadDim + dim;
    std::uint16_t* y = to + head * p.out_head_stride + dim;
    const Pair back = rotate_back({load_bf16(x[0]), load_bf16(x[1])}, turn);
    y[0] = store_bf16(back.even);
    y[1] = store_bf16(back.odd);
  }
  if (to == from) return;
  for (std::int64_t i = thread_index(); i < p.heads * kNopeDim; i += block_size()) {
    const std::int64_t head = i / kNopeDim, dim = i % kNopeDim;
    to[head * p.out_head_stride + dim] = from[head * kHeadDim + dim];
  }
}

inline plumb_status launch_inverse_rope(const void* params) {
  constexpr int kBlock = 256;
  auto p = *static_cast<const plumb_inverse_rope_params*>(params);
  if (p.out == nullptr) {
    p.out = p.x;
    p.out_token_stride = p.x_token_stride;
    p.out_head_stride = kHeadDim;
  }
  if (p.tokens < 0 || p.heads < 1 || p.x_token_stride < p.heads * kHeadDim ||
      p.out_token_stride < kHeadDim || p.out_head_stride < kHeadDim) {
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
