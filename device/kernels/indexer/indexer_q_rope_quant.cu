// SPDX-License-Identifier: Apache-2.0
//
// indexer_q_rope_quant: eight lanes rotate and quantise one head of one token (group_quant.h).
// Group g of the grid is head g % heads of token g / heads. A lane computes the rotated values of
// its own dimensions twice: for the largest value and for the codes. With a Hadamard transform it
// keeps them in registers. Legal: any tokens and heads that fit the grid's x; any dim, up to 1024
// with a transform.
#include <plumb/ops/indexer.h>

#include <cmath>

#include "device/kernels/quantization/group_quant.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

// Dimension d of a head after RoPE; rotated dimensions are rounded to bf16 unless fp32 is asked
// for.
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

constexpr int kMostTransformed = 1024, kMostOfLane = kMostTransformed / kGroupLanes;

// Sizes of the Hadamard transform of a head by eight lanes.
struct Transform {
  int padded = 0;  // dim rounded up to a power of two, 8 at least
  float root = 1;  // dim^-0.5
};

Transform transform_of(std::int64_t dim) {
  Transform transform;
  transform.padded = kGroupLanes;
  while (transform.padded < dim) transform.padded *= 2;
  transform.root = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
  return transform;
}

// Hadamard transform in place. values[i] of lane l is dimension l + 8 i of `padded`. Each step
// combines dimensions that are 1, 2, 4, ... apart. At distances below 8 the other one is in another
// lane.
PLUMB_DEVICE inline void add_and_subtract(float* values, int padded) {
  const int count = padded / kGroupLanes;
  for (int distance = 1; distance < kGroupLanes; distance *= 2) {
    for (int i = 0; i < count; ++i) {
      const float other = shuffle_xor(all_lanes(), values[i], distance, kGroupLanes);
      values[i] = group_lane() & distance ? other - values[i] : values[i] + other;
    }
  }
  for (int distance = 1; distance < count; distance *= 2) {
    for (int i = 0; i < count; ++i) {
      if (i & distance) continue;
      const float sum = values[i] + values[i + distance];
      values[i + distance] = values[i] - values[i + distance];
      values[i] = sum;
    }
  }
}

// This lane's dimensions after RoPE and transform. `dim`: 0 if the group has no head.
PLUMB_DEVICE inline void transformed(const plumb_indexer_q_rope_quant_params& p,
                                     const std::uint16_t* head, const float* cos_sin, int dim,
                                     Transform transform, float* values) {
  for (int i = 0; i < transform.padded / kGroupLanes; ++i) {
    const int d = group_lane() + i * kGroupLanes;
    values[i] = d < dim ? rotated(p, head, cos_sin, d) : 0.0F;
  }
  add_and_subtract(values, transform.padded);
  for (int i = 0; i < transform.padded / kGroupLanes; ++i) {
    values[i] *= transform.root;
    if (p.rotated_rounding == PLUMB_ROTATED_BF16) values[i] = load_bf16(store_bf16(values[i]));
  }
}

// max |x| of a head; its eight lanes all get it. `value(d)`: dimension d.
template <class Value>
PLUMB_DEVICE float head_amax(int dim, Value value) {
  float amax = 0;
  for (int d = group_lane(); d < dim; d += kGroupLanes) {
    const float x = value(d), size = x < 0 ? -x : x;
    amax = size > amax ? size : amax;
  }
  for (int distance = kGroupLanes / 2; distance > 0; distance /= 2) {
    const float other = shuffle_xor(all_lanes(), amax, distance, kGroupLanes);
    amax = other > amax ? other : amax;
  }
  return amax;
}

template <bool transforms>
PLUMB_KERNEL void indexer_q_rope_quant_kernel(plumb_indexer_q_rope_quant_params p,
                                              Transform transform) {
  const std::int64_t index = group_index(), token = index / p.heads, own = index % p.heads;
  const bool exists = token < p.tokens;
  const std::uint16_t* head = p.q + token * p.q_token_stride + own * p.dim;
  const float* cos_sin = exists ? p.cos_sin + p.positions[token] * p.rope_dim : p.cos_sin;
  const int dim = exists ? static_cast<int>(p.dim) : 0;
  float kept[transforms ? kMostOfLane : 1];
  if (transforms) transformed(p, head, cos_sin, dim, transform, kept);
  const auto value = [&](int d) {
    return transforms ? kept[d / kGroupLanes] : rotated(p, head, cos_sin, d);
  };
  const float amax = head_amax(dim, value);
  if (!exists) return;

  const float ratio = at_least(p.amax_floor, amax) / quantisation_largest(p.dialect);
  const bool pow2 = p.scale_form == PLUMB_QUERY_SCALE_POW2;
  const float scale = pow2 ? decode_ue8m0(encode_ue8m0(ratio)) : ratio;
  for (int d = group_lane(); d < p.dim; d += kGroupLanes) {
    p.q_out[token * p.q_out_token_stride + own * p.q_out_head_stride + d] =
        encode_e4m3(value(d) / scale, p.dialect);
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
  const bool transforms = p.hadamard != PLUMB_HADAMARD_NONE;
  if (transforms && p.dim > kMostTransformed) return PLUMB_UNSUPPORTED;
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.q || !p.positions || !p.cos_sin || !p.weights || !p.q_out || !p.weights_out) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const LaunchShape shape{blocks_for_groups(p.tokens * p.heads), 1, kQuantBlock, 0};
  const Transform transform = transform_of(p.dim);
  if (transforms) {
    return PLUMB_LAUNCH(indexer_q_rope_quant_kernel<true>, shape, p.stream, p, transform);
  }
  return PLUMB_LAUNCH(indexer_q_rope_quant_kernel<false>, shape, p.stream, p, transform);
}

}  // namespace

OpEntry indexer_q_rope_quant() {
  return {"indexer_q_rope_quant", launch_indexer_q_rope_quant, group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
