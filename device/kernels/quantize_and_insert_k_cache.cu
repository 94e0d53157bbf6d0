// SPDX-License-Identifier: Apache-2.0
//
// quantize_and_insert_k_cache: eight lanes per group of 64 columns (group_quant.h), eight groups
// per token: seven are quantised, the last (RoPE) is copied. Legal: any tokens that fit the grid's
// x, any page.
#include "device/kernels/group_quant.h"
#include "device/kernels/mla_cache.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr float kAmaxFloor = 1e-4F;
constexpr int kGroups = kValueDim / kGroup;
constexpr int kRopeGroup = kGroups - 1;  // bf16, without a scale

PLUMB_DEVICE void copy_rope(const std::uint16_t* x, std::uint8_t* data) {
  auto* rope = reinterpret_cast<std::uint16_t*>(data);
  for (int i = group_lane(); i < kGroup; i += kGroupLanes) rope[i] = x[i];
}

PLUMB_DEVICE void quantize_group(const std::uint16_t* x, float amax, plumb_format dialect,
                                 std::uint8_t* data, std::uint8_t* scale_byte) {
  const std::uint8_t byte =
      encode_ue8m0(at_least(kAmaxFloor, amax) / quantisation_largest(dialect));
  const float scale = decode_ue8m0(byte);
  if (group_lane() == 0) *scale_byte = byte;
  for (int i = group_lane(); i < kGroup; i += kGroupLanes) {
    data[i] = encode_e4m3(load_bf16(x[i]) / scale, dialect);
  }
}

PLUMB_KERNEL void quantize_and_insert_k_cache_kernel(plumb_quantize_and_insert_k_cache_params p) {
  const std::int64_t token = group_index() / kGroups;
  const int group = static_cast<int>(group_index() % kGroups);
  const std::int64_t slot = token < p.tokens ? p.slot_mapping[token] : -1;
  const std::uint16_t* x = p.kv + token * p.kv_row_stride + group * kGroup;
  const float amax = group_amax(x, slot < 0 || group == kRopeGroup ? 0 : kGroup);
  if (slot < 0) return;
  std::uint8_t* block = p.cache.data + slot / p.cache.page * p.cache.block_stride_bytes;
  const std::int64_t offset = slot % p.cache.page;
  std::uint8_t* data = block + offset * kTokenBytes + group * kGroup;
  std::uint8_t* scales = block + std::int64_t{p.cache.page} * kTokenBytes + offset * kScaleBytes;
  if (group < kRopeGroup) {
    quantize_group(x, amax, p.cache.dialect, data, scales + group);
    return;
  }
  copy_rope(x, data);
  if (group_lane() == 0) scales[kRopeGroup] = 0;
}

plumb_status launch_quantize_and_insert_k_cache(const void* params) {
  const auto& p = *static_cast<const plumb_quantize_and_insert_k_cache_params*>(params);
  const std::int64_t least_stride = std::int64_t{p.cache.page} * (kTokenBytes + kScaleBytes);
  if (p.tokens < 0 || p.kv_row_stride < kValueDim || p.cache.page < 1 ||
      p.cache.block_stride_bytes < least_stride || p.cache.block_stride_bytes % 2 != 0) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.kv || !p.slot_mapping || !p.cache.data) return PLUMB_INVALID_ARGUMENT;
  const LaunchShape shape{blocks_for_groups(p.tokens * kGroups), 1, kQuantBlock, 0};
  return PLUMB_LAUNCH(quantize_and_insert_k_cache_kernel, shape, p.stream, p);
}

}  // namespace

plumb_op_entry quantize_and_insert_k_cache() {
  return {"quantize_and_insert_k_cache", launch_quantize_and_insert_k_cache,
          group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
