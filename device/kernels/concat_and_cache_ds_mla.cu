// SPDX-License-Identifier: Apache-2.0
//
// concat_and_cache_ds_mla: eight lanes per tile (group_quant.h), five tiles per token: four of 128
// columns, two vectors per lane, are quantised, the fifth (RoPE, one vector) is copied. A block
// takes kTokensOfBlock tokens, each thread its columns of two of them, all loaded before the first
// is needed. Legal: any tokens that fit the grid's x, any page.
#include "device/kernels/group_quant.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kTile = 128, kTiles = 4, kLatent = kTile * kTiles, kRope = 64;
constexpr int kScalesAt = kLatent, kRopeAt = kScalesAt + 4 * kTiles, kEntryBytes = kRopeAt + 128;
constexpr float kLeastScale = 0x1p-126F;  // FLT_MIN

constexpr int kTokenThreads = (kTiles + 1) * kGroupLanes, kTileVectors = 2;
constexpr int kTokensAtOnce = 8, kTokensOfThread = 2;  // 320 threads: whole waves of 32 and 64
constexpr int kTokensOfBlock = kTokensAtOnce * kTokensOfThread;
constexpr int kThreads = kTokensAtOnce * kTokenThreads;

PLUMB_DEVICE void quantize_tile(const GroupVectors<kTileVectors>& bits, float amax,
                                plumb_format dialect, int tile, bool whole, std::uint8_t* entry) {
  const float scale = at_least(kLeastScale, amax / quantisation_largest(dialect));
  if (group_lane() == 0) reinterpret_cast<float*>(entry + kScalesAt)[tile] = scale;
  PLUMB_UNROLL
  for (int v = 0; v < kTileVectors; ++v) {
    float x[kBf16x8];
    decode_bf16x8(bits.at[v], x);
    PLUMB_UNROLL
    for (int i = 0; i < kBf16x8; ++i) x[i] /= scale;
    store_codes(entry + tile * kTile + group_column(v), encode_e4m3x8(x, dialect), whole);
  }
}

PLUMB_DEVICE GroupVectors<kTileVectors> load_tile(const plumb_concat_and_cache_ds_mla_params& p,
                                                  std::int64_t token, int tile, bool whole) {
  const bool live = token < p.tokens;
  if (tile < kTiles) {
    return load_group<kTileVectors>(p.kv_c + token * p.kv_c_row_stride + tile * kTile, live, whole);
  }
  return {{load_group<1>(p.k_pe + token * p.k_pe_row_stride, live, whole).at[0], {}}};
}

template <bool whole>
PLUMB_KERNEL void concat_and_cache_ds_mla_kernel(plumb_concat_and_cache_ds_mla_params p) {
  const int tile = thread_index() % kTokenThreads / kGroupLanes;
  const std::int64_t first = std::int64_t{block_index_x()} * kTokensOfBlock;
  std::int64_t slots[kTokensOfThread];
  GroupVectors<kTileVectors> bits[kTokensOfThread];
  PLUMB_UNROLL
  for (int i = 0; i < kTokensOfThread; ++i) {
    const std::int64_t token = first + i * kTokensAtOnce + thread_index() / kTokenThreads;
    slots[i] = token < p.tokens ? p.slot_mapping[token] : -1;
    bits[i] = load_tile(p, token, tile, whole);
  }
  PLUMB_UNROLL
  for (int i = 0; i < kTokensOfThread; ++i) {
    const float amax = group_amax(bits[i]);
    if (slots[i] < 0) continue;
    const auto [block, offset] = place_of(slots[i], p.cache.page);
    std::uint8_t* entry = p.cache.data + block * p.cache.block_stride_bytes + offset * kEntryBytes;
    if (tile < kTiles) {
      quantize_tile(bits[i], amax, p.cache.dialect, tile, whole, entry);
      continue;
    }
    auto* rope = reinterpret_cast<std::uint16_t*>(entry + kRopeAt);
    store_bf16x8(rope + group_column(0), bits[i].at[0], kBf16x8, whole);
  }
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
  const LaunchShape shape{(p.tokens + kTokensOfBlock - 1) / kTokensOfBlock, 1, kThreads, 0};
  if (are_whole_rows(p.kv_c, p.kv_c_row_stride) && are_whole_rows(p.k_pe, p.k_pe_row_stride) &&
      is_whole_cache(p.cache)) {
    return PLUMB_LAUNCH(concat_and_cache_ds_mla_kernel<true>, shape, p.stream, p);
  }
  return PLUMB_LAUNCH(concat_and_cache_ds_mla_kernel<false>, shape, p.stream, p);
}

}  // namespace

plumb_op_entry concat_and_cache_ds_mla() {
  return {"concat_and_cache_ds_mla", launch_concat_and_cache_ds_mla, group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
