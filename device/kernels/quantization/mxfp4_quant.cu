// SPDX-License-Identifier: Apache-2.0
//
// mxfp4_quant: eight lanes quantise one group of 32 columns of one token (group_quant.h), two
// bytes of two codes each per lane. Legal: any tokens that fit the grid's x, columns a multiple
// of 32.
#include <plumb/ops/quantization.h>

#include "device/kernels/fp4.h"
#include "device/kernels/quantization/group_quant.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

// PLUMB_MX_SCALE_EVEN adds a quarter of the mantissa's range. From 1.75 on, the sum carries into
// the exponent.
PLUMB_DEVICE std::uint8_t scale_byte(float amax, plumb_mx_scale_rule rule) {
  if (rule == PLUMB_MX_SCALE_RCEIL) return encode_ue8m0(amax / kLargestE2m1);
  constexpr std::uint32_t kQuarter = 0x00200000U;
  const std::uint32_t exponent =
      (float_bits(amax) + (rule == PLUMB_MX_SCALE_EVEN ? kQuarter : 0)) >> 23;
  return static_cast<std::uint8_t>(exponent < 2 ? 0 : exponent - 2);
}

PLUMB_KERNEL void mxfp4_quant_kernel(plumb_mxfp4_quant_params p) {
  const std::int64_t groups = p.columns / kMxGroup, index = group_index();
  const std::int64_t token = index / groups, group = index % groups;
  const bool live = token < p.tokens;
  const std::uint16_t* x = p.x + token * p.x_row_stride + group * kMxGroup;
  const float amax = group_amax(x, live ? kMxGroup : 0);
  if (!live) return;
  const std::uint8_t byte = scale_byte(at_least(p.amax_floor, amax), p.scale_rule);
  const float scale = decode_ue8m0(byte);
  if (group_lane() == 0) p.scales[token * p.scales_row_stride + group] = byte;
  std::uint8_t* q = p.q + token * p.q_row_stride + group * (kMxGroup / 2);
  for (int i = group_lane(); i < kMxGroup / 2; i += kGroupLanes) {
    const std::uint32_t even = encode_e2m1(load_bf16(x[2 * i]) / scale, p.ties, p.negative_zero);
    const std::uint32_t odd = encode_e2m1(load_bf16(x[2 * i + 1]) / scale, p.ties, p.negative_zero);
    q[i] = static_cast<std::uint8_t>(even | odd << 4);
  }
}

plumb_status launch_mxfp4_quant(const void* params) {
  const auto& p = *static_cast<const plumb_mxfp4_quant_params*>(params);
  if (p.tokens < 0 || p.columns < kMxGroup || p.columns % kMxGroup != 0 ||
      p.x_row_stride < p.columns || p.q_row_stride < p.columns / 2 ||
      p.scales_row_stride < p.columns / kMxGroup || !(p.amax_floor > 0)) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.q || !p.scales) return PLUMB_INVALID_ARGUMENT;
  const LaunchShape shape{blocks_for_groups(p.tokens * (p.columns / kMxGroup)), 1, kQuantBlock, 0};
  return PLUMB_LAUNCH(mxfp4_quant_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry mxfp4_quant() { return {"mxfp4_quant", launch_mxfp4_quant, group_quant_numerics()}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
