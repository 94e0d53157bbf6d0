// SPDX-License-Identifier: Apache-2.0
//
// q_head_rms_norm_rope: one wave normalises and rotates one (token, head). Lane l owns the pairs of
// neighbours l, l + wave, ...: what it rotates it has normalised itself, so nothing needs a
// barrier. Launch: 4 waves per block, grid (ceil(tokens * heads / 4)).
#include "device/kernels/rope.h"
#include "device/kernels/row_norm.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kRowsPerBlock = 4;

PLUMB_KERNEL void q_head_rms_norm_rope_kernel(plumb_q_head_rms_norm_rope_params p) {
  const std::int64_t row =
      static_cast<std::int64_t>(block_index_x()) * kRowsPerBlock + wave_index();
  if (row >= p.tokens * p.heads) return;
  const std::int64_t token = row / p.heads, head = row % p.heads;
  const std::uint16_t* q = p.q + token * p.q_token_stride + head * kHeadDim;
  std::uint16_t* out = p.out + row * kHeadDim;
  float squares = 0;
  for (int i = lane_index(); i < kHeadDim / 2; i += wave_size()) {
    const float even = load_bf16(q[2 * i]), odd = load_bf16(q[2 * i + 1]);
    squares += even * even;
    squares += odd * odd;
  }
  const float r = rsqrt_approx(sum_of_lanes(squares) / static_cast<float>(kHeadDim) + p.eps);
  for (int i = lane_index(); i < kHeadDim / 2; i += wave_size()) {
    Pair y = {load_bf16(q[2 * i]) * r, load_bf16(q[2 * i + 1]) * r};
    const int pair = i - kNopeDim / 2;
    if (pair >= 0) y = rotate(y, turn_of(p.cos_sin, p.positions[token], pair));
    out[2 * i] = store_bf16(y.even);
    out[2 * i + 1] = store_bf16(y.odd);
  }
}

inline plumb_status launch_q_head_rms_norm_rope(const void* params) {
  const auto& p = *static_cast<const plumb_q_head_rms_norm_rope_params*>(params);
  if (p.tokens < 0 || p.heads < 1 || p.q_token_stride < p.heads * kHeadDim) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.q || !p.positions || !p.cos_sin || !p.out) return PLUMB_INVALID_ARGUMENT;
  const std::int64_t blocks = (p.tokens * p.heads + kRowsPerBlock - 1) / kRowsPerBlock;
  const int threads = kRowsPerBlock * stream_properties(p.stream).wave_size;
  return PLUMB_LAUNCH(q_head_rms_norm_rope_kernel, (LaunchShape{blocks, 1, threads, 0}), p.stream,
                      p);
}

plumb_op_entry q_head_rms_norm_rope() {
  // One chain per lane: 32 of them where the wave has no more.
  return {"q_head_rms_norm_rope",
          launch_q_head_rms_norm_rope,
          {PLUMB_F32, PLUMB_F32, 32, PLUMB_F32, 2.0f, 1, 0}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
