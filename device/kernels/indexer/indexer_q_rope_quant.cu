// SPDX-License-Identifier: Apache-2.0
//
// indexer_q_rope_quant: eight lanes rotate and quantise one head of one token (group_quant.h);
// group g of the grid is head g % heads of token g / heads. Each lane computes the rotated values
// of its own dimensions, once for the largest and once for the codes. Legal: any tokens and heads
// that fit the grid's x, any dim.
#include <plumb/ops/indexer.h>

#include "device/kernels/quantization/group_quant.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

// Dimension d of a head after the rotation, in bf16 unless fp32 is kept.
PLUMB_DEVICE float rotated(const plumb_indexer_q_rope_quant_params& p, const std::uint16_t* head,
                           const float* cos_sin, int d) {
  const float own = load_bf16(head[d]);
  const int i = d - static_cast<int>(p.rope_offset), half = static_cast<int>(p.rope_dim) / 2;
  if (i < 0 || i >= p.rope_dim) return own;
  const bool interleaved = p.rope_pairs == PLUMB_ROPE_INTERLEAVED;
  const int pair = interleaved ? i / 2 : i % half, distance = interleaved ? 1 : half;
  const bool first = interleaved ? i % 2 == 0 : i < half;
  const float other = load_bf16(head[first ? d + distance : d - distance]);
  const float cosine = cos_sin[pair], sine = cos_sin[half + pair];
  const float turned = first ? own * cosine - other * sine : own * cosine + other * sine;
  if (p.rotated_rounding == PLUMB_ROTATED_NONE) return turned;
  return load_bf16(store_bf16(turned));
}

// max |x| of a rotated head, the same in its eight lanes.
PLUMB_DEVICE float rotated_amax(const plumb_indexer_q_rope_quant_params& p,
                                const std::uint16_t* head, const float* cos_sin, int dim) {
  float amax = 0;
  for (int d = group_lane(); d < dim; d += kGroupLanes) {
    const float value = rotated(p, head, cos_sin, d), size = value < 0 ? -value : value;
    amax = size > amax ? size : amax;
  }
  for (int distance = kGroupLanes / 2; distance > 0; distance /= 2) {
    const float other = shuffle_xor(all_lanes(), amax, distance, kGroupLanes);
    amax = other > amax ? other : amax;
  }
  return amax;
}

PLUMB_KERNEL void indexer_q_rope_quant_kernel(plumb_indexer_q_rope_quant_params p) {
  const std::int64_t index = group_index(), token = index / p.heads, own = index % p.heads;
  const bool exists = token < p.tokens;
  const std::uint16_t* head = p.q + token * p.q_token_stride + own * p.dim;
  const float* cos_sin = exists ? p.cos_sin + p.positions[token] * p.rope_dim : p.cos_sin;
  const float amax = rotated_amax(p, head, cos_sin, exists ? static_cast<int>(p.dim) : 0);
  if (!exists) return;

  const float ratio = at_least(p.amax_floor, amax) / quantisation_largest(p.dialect);
  const bool pow2 = p.scale_form == PLUMB_QUERY_SCALE_POW2;
  const float scale = pow2 ? decode_ue8m0(encode_ue8m0(ratio)) : ratio;
  for (int d = group_lane(); d < p.dim; d += kGroupLanes) {
    p.q_out[token * p.q_out_token_stride + own * p.q_out_head_stride + d] =
        encode_e4m3(rotated(p, head, cos_sin, d) / scale, p.dialect);
  }
  if (group_lane() == 0) {
    p.weights_out[token * p.weights_out_row_stride + own] =
        load_bf16(p.weights[index]) * scale * p.softmax_scale * p.head_scale;
  }
}

bool is_legal(const plumb_indexer_q_rope_quant_params& p) {
  return p.tokens >= 0 && p.heads >= 1 && p.dim >= 1 && p.rope_dim >= 0 && p.rope_dim % 2 == 0 &&
         p.rope_offset >= 0 && p.rope_offset + p.rope_dim <= p.dim &&
         p.q_token_stride >= p.heads * p.dim && fits_int(p.heads, p.dim) &&
         p.q_out_token_stride >= p.dim && p.q_out_head_stride >= p.dim &&
         p.weights_out_row_stride >= p.heads && p.amax_floor > 0 &&
         (p.rope_pairs == PLUMB_ROPE_INTERLEAVED || p.rope_pairs == PLUMB_ROPE_HALVES) &&
         (p.dialect == PLUMB_E4M3FN || p.dialect == PLUMB_E4M3FNUZ);
}

plumb_status launch_indexer_q_rope_quant(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_indexer_q_rope_quant_params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.q || !p.positions || !p.cos_sin || !p.weights || !p.q_out || !p.weights_out) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const LaunchShape shape{blocks_for_groups(p.tokens * p.heads), 1, kQuantBlock, 0};
  return PLUMB_LAUNCH(indexer_q_rope_quant_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry indexer_q_rope_quant() {
  return {"indexer_q_rope_quant", launch_indexer_q_rope_quant, group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
