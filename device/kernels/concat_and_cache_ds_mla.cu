// SPDX-License-Identifier: Apache-2.0
//
// concat_and_cache_ds_mla: eight lanes per tile (group_quant.h), five tiles per token: four of 128
// columns are quantised, the fifth (RoPE) is copied. Legal: any tokens that fit the grid's x, any
// page.
#include "device/kernels/group_quant.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kTile = 128, kTiles = 4, kLatent = kTile * kTiles, kRope = 64;
constexpr int kScalesAt = kLatent, kRopeAt = kScalesAt + 4 * kTiles, kEntryBytes = kRopeAt + 128;
constexpr float kLeastScale = 0x1p-126F;  // FLT_MIN

PLUMB_DEVICE void quantize_tile(const std::uint16_t* x, float amax, plumb_format dialect, int tile,
                                std::uint8_t* entry) {
  const float scale = at_least(kLeastScale, amax / quantisation_largest(dialect));
  if (group_lane() == 0) reinterpret_cast<float*>(entry + kScalesAt)[tile] = scale;
  for (int i = group_lane(); i < kTile; i += kGroupLanes) {
    entry[tile * kTile + i] = encode_e4m3(load_bf16(x[i]) / scale, dialect);
  }
}

PLUMB_KERNEL void concat_and_cache_ds_mla_kernel(plumb_concat_and_cache_ds_mla_params p) {
  const std::int64_t token = group_index() / (kTiles + 1);
  const int tile = static_cast<int>(group_index() % (kTiles + 1));
  const std::int64_t slot = token < p.tokens ? p.slot_mapping[token] : -1;
  const std::uint16_t* x = p.kv_c + token * p.kv_c_row_stride + tile * kTile;
  const float amax = group_amax(x, slot < 0 || tile == kTiles ? 0 : kTile);
  if (slot < 0) return;
  std::uint8_t* entry = p.cache.data + slot / p.cache.page * p.cache.block_stride_bytes +
                        slot % p.cache.page * kEntryBytes;
  if (tile < kTiles) {
    quantize_tile(x, amax, p.cache.dialect, tile, entry);
    return;
  }
  auto* rope = reinterpret_cast<std::uint16_t*>(entry + kRopeAt);
  const std::uint16_t* k_pe = p.k_pe + token * p.k_pe_row_stride;
  for (int i = group_lane(); i < kRope; i += kGroupLanes) rope[i] = k_pe[i];
}

plumb_status launch_concat_and_cache_ds_mla(const void* params) {
  const auto& p = *static_cast<const plumb_concat_and_cache_ds_mla_params*>(params);
  if (p.tokens < 0 || p.kv_c_row_stride < kLatent || p.k_pe_row_stride < kRope ||
      p.cache.page < 1 || p.cache.block_stride_bytes < std::int64_t{p.cache.page} * kEntryBytes ||
      p.cache.block_stride_bytes % 4 != 0) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.kv_c || !p.k_pe || !p.slot_mapping || !p.cache.data) return PLUMB_INVALID_ARGUMENT;
  const LaunchShape shape{blocks_for_groups(p.tokens * (kTiles + 1)), 1, kQuantBlock, 0};
  return PLUMB_LAUNCH(concat_and_cache_ds_mla_kernel, shape, p.stream, p);
}

}  // namespace

plumb_op_entry concat_and_cache_ds_mla() {
  return {"concat_and_cache_ds_mla", launch_concat_and_cache_ds_mla, group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
