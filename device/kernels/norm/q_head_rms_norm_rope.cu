// SPDX-License-Identifier: Apache-2.0
//
// q_head_rms_norm_rope: a wave normalises and rotates one head of one token. Lane l has the vectors
// of eight columns l, l + wave size, ... (bf16.h), which contain whole pairs. A lane rotates only
// what it has normalised itself, so no barrier is needed, also in place. Launch: 4 waves per block,
// one for each of 4 heads.
#include <plumb/ops/norm.h>

#include "device/kernels/norm/rope.h"
#include "device/kernels/norm/row_norm.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kHeadsPerBlock = 4;

// Rotates the pairs of eight columns; `first` is the first pair.
PLUMB_DEVICE inline void rotate_pairs(float* values, const float* cos_sin, std::int64_t position,
                                      int first) {
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; i += 2) {
    const Turn turn = turn_of(cos_sin, position, first + i / 2);
    const Pair y = rotate({values[i], values[i + 1]}, turn);
    values[i] = y.even;
    values[i + 1] = y.odd;
  }
}

template <bool whole>
PLUMB_KERNEL void q_head_rms_norm_rope_kernel(plumb_q_head_rms_norm_rope_params p, int groups) {
  const std::int64_t token = block_index_x() / groups;
  const std::int64_t head = block_index_x() % groups * kHeadsPerBlock + wave_index();
  if (head >= p.heads) return;
  std::uint16_t* out = p.out + token * p.out_token_stride + head * p.out_head_stride;
  const std::uint16_t* q = p.q ? p.q + token * p.q_token_stride + head * kHeadDim : out;
  constexpr int kMostVectors = 2;  // per lane, in waves of 32
  Bf16x8 kept[kMostVectors];
  float x[kBf16x8], squares = 0;
  PLUMB_UNROLL
  for (int i = 0; i < kMostVectors; ++i) {
    const int column = kBf16x8 * (lane_index() + i * wave_size());
    kept[i] = load_bf16x8(q + column, kHeadDim - column, whole);
  }
  PLUMB_UNROLL
  for (int i = 0; i < kMostVectors; ++i) {
    decode_bf16x8(kept[i], x);
    squares += sum_of_squares(x);
  }
  float r = rsqrt_approx(sum_of_lanes(squares) / static_cast<float>(kHeadDim) + p.eps);
  if (p.rounding == PLUMB_ROUND_FACTOR) r = load_bf16(store_bf16(r));
  PLUMB_UNROLL
  for (int i = 0; i < kMostVectors; ++i) {
    const int column = kBf16x8 * (lane_index() + i * wave_size());
    if (column >= kHeadDim) break;
    decode_bf16x8(kept[i], x);
    PLUMB_UNROLL
    for (int k = 0; k < kBf16x8; ++k) {
      x[k] *= r;
      if (p.rounding != PLUMB_ROUND_ONCE) x[k] = load_bf16(store_bf16(x[k]));
    }
    const int pair = (column - kNopeDim) / 2;
    if (column >= kNopeDim) rotate_pairs(x, p.cos_sin, p.positions[token], pair);
    store_bf16x8(out + column, round_bf16x8(x), kHeadDim - column, whole);
  }
}

inline plumb_status launch_q_head_rms_norm_rope(const void* params) {
  const auto& p = *static_cast<const plumb_q_head_rms_norm_rope_params*>(params);
  if (p.tokens < 0 || p.heads < 1 || (p.q && p.q_token_stride < p.heads * kHeadDim) ||
      p.out_token_stride < kHeadDim || p.out_head_stride < kHeadDim) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.positions || !p.cos_sin || !p.out) return PLUMB_INVALID_ARGUMENT;
  const std::int64_t groups = (p.heads + kHeadsPerBlock - 1) / kHeadsPerBlock;
  const int threads = kHeadsPerBlock * stream_properties(p.stream).wave_size;
  const LaunchShape shape{p.tokens * groups, 1, threads, 0};
  const int group_count = static_cast<int>(groups);
  if (has_whole_vectors({kHeadDim, p.q_token_stride, p.out_token_stride, p.out_head_stride}, p.q,
                        p.out)) {
    return PLUMB_LAUNCH((q_head_rms_norm_rope_kernel<true>), shape, p.stream, p, group_count);
  }
  return PLUMB_LAUNCH((q_head_rms_norm_rope_kernel<false>), shape, p.stream, p, group_count);
}

OpEntry q_head_rms_norm_rope() {
  return {"q_head_rms_norm_rope", launch_q_head_rms_norm_rope, row_norm_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
