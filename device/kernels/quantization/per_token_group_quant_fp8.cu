// SPDX-License-Identifier: Apache-2.0
//
// per_token_group_quant_fp8: eight lanes quantise one group of columns of one token
// (group_quant.h); group g of the grid is group g % n of token g / n, where n is scales_per_token.
// Legal: any tokens and columns that fit the grid's x, any group size.
#include <plumb/ops/quantization.h>

#include "device/kernels/quantization/group_quant.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

// Scales that are stored per token; packed ones fill whole words of four. constexpr because the
// launcher and the kernel both call it.
constexpr std::int64_t scales_per_token(const plumb_per_token_group_quant_fp8_params& p) {
  const std::int64_t groups = (p.columns + p.group_size - 1) / p.group_size;
  return p.scale_format == PLUMB_SCALE_PACKED_UE8M0 ? (groups + 3) / 4 * 4 : groups;
}

// Tokens whose scales are stored. In packed columns this includes padding up to a multiple of four,
// if it is zeroed.
constexpr std::int64_t tokens_with_scales(const plumb_per_token_group_quant_fp8_params& p) {
  const bool columns = p.scale_format == PLUMB_SCALE_PACKED_UE8M0 && p.scales_group_stride > 1;
  const bool padded = columns && p.padding_rows == PLUMB_PADDING_ROWS_ZERO;
  return padded ? (p.tokens + 3) / 4 * 4 : p.tokens;
}

PLUMB_DEVICE float scale_of(const plumb_per_token_group_quant_fp8_params& p, float amax) {
  const float exact =
      at_least(p.scale_floor, at_least(p.amax_floor, amax) / quantisation_largest(p.dialect));
  return p.scale_format == PLUMB_SCALE_F32 ? exact : decode_ue8m0(encode_ue8m0(exact));
}

// Stores one byte of a little-endian word, so that no two groups write the same location.
PLUMB_DEVICE void store_byte(const plumb_per_token_group_quant_fp8_params& p, std::int64_t token,
                             std::int64_t group, std::uint8_t byte) {
  const std::int64_t word = token * p.scales_token_stride + group / 4 * p.scales_group_stride;
  static_cast<std::uint8_t*>(p.scales)[word * 4 + group % 4] = byte;
}

PLUMB_DEVICE void store_scale(const plumb_per_token_group_quant_fp8_params& p, std::int64_t token,
                              std::int64_t group, float scale) {
  if (p.scale_format == PLUMB_SCALE_PACKED_UE8M0) {
    return store_byte(p, token, group, encode_ue8m0(scale));
  }
  static_cast<float*>(p.scales)[token * p.scales_token_stride + group * p.scales_group_stride] =
      scale;
}

// Scale byte of a group behind the last one.
PLUMB_DEVICE std::uint8_t filler_of(const plumb_per_token_group_quant_fp8_params& p) {
  if (p.filler == PLUMB_FILLER_94) return 94;
  return p.filler == PLUMB_FILLER_127 ? 127 : 0;
}

PLUMB_DEVICE void store_codes(const plumb_per_token_group_quant_fp8_params& p,
                              const std::uint16_t* x, std::int64_t count, float scale,
                              std::uint8_t* q) {
  const float largest = quantisation_largest(p.dialect), reciprocal = 1.0F / scale;
  for (std::int64_t i = group_lane(); i < p.group_size; i += kGroupLanes) {
    if (i >= count) {
      q[i] = 0;
      continue;
    }
    const float value = load_bf16(x[i]);
    const float exact = p.quotient == PLUMB_DIVIDE ? value / scale : value * reciprocal;
    const float above = exact < -largest ? -largest : exact;
    q[i] = encode_e4m3(above > largest ? largest : above, p.dialect);
  }
}

PLUMB_KERNEL void per_token_group_quant_fp8_kernel(plumb_per_token_group_quant_fp8_params p) {
  const std::int64_t groups = scales_per_token(p), index = group_index();
  const std::int64_t token = index / groups, group = index % groups;
  const std::int64_t begin = group * p.group_size;
  const std::int64_t left = token < p.tokens ? p.columns - begin : 0;
  const std::int64_t count = left < p.group_size ? left : p.group_size;
  const std::uint16_t* x = p.x + token * p.x_row_stride + begin;
  const float amax = group_amax(x, count);
  if (token >= p.tokens) {
    const bool zeroed = token < tokens_with_scales(p) && group / 4 + 1 < groups / 4;
    if (zeroed && group_lane() == 0) store_byte(p, token, group, 0);
    return;
  }
  if (count <= 0) {
    if (group_lane() == 0) store_byte(p, token, group, filler_of(p));
    return;
  }
  const float scale = scale_of(p, amax);
  if (group_lane() == 0) store_scale(p, token, group, scale);
  store_codes(p, x, count, scale, p.q + token * p.q_row_stride + begin);
}

bool is_legal(const plumb_per_token_group_quant_fp8_params& p) {
  return p.tokens >= 0 && p.columns >= 1 && p.group_size >= 1 && p.x_row_stride >= p.columns &&
         (p.amax_floor > 0 || p.scale_floor > 0) &&
         (p.dialect == PLUMB_E4M3FN || p.dialect == PLUMB_E4M3FNUZ);
}

plumb_status launch_per_token_group_quant_fp8(const void* params) {
  const auto& p = *static_cast<const plumb_per_token_group_quant_fp8_params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.q || !p.scales) return PLUMB_INVALID_ARGUMENT;
  const LaunchShape shape{blocks_for_groups(tokens_with_scales(p) * scales_per_token(p)), 1,
                          kQuantBlock, 0};
  return PLUMB_LAUNCH(per_token_group_quant_fp8_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry per_token_group_quant_fp8() {
  return {"per_token_group_quant_fp8", launch_per_token_group_quant_fp8, group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
