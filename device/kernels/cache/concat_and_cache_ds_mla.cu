// SPDX-License-Identifier: Apache-2.0
//
// concat_and_cache_ds_mla: 32 lanes take a token, 16 columns each (group_quant.h). Eight lanes make
// a tile of 128 columns, which are quantised with one scale. Eight lanes also copy a vector of RoPE
// each. A block takes kTokensOfBlock tokens. A thread has the same columns of every
// kTokensAtOnce-th token, and loads all before it uses the first. Legal: any tokens that fit the
// grid's x, any page.
#include "device/kernels/quantization/group_quant.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kTile = 128, kTiles = 4, kLatent = kTile * kTiles, kRope = 64;
constexpr int kScalesAt = kLatent, kRopeAt = kScalesAt + 4 * kTiles, kEntryBytes = kRopeAt + 128;

constexpr int kTokenThreads = kLatent / kLaneColumns, kLanes = kTile / kLaneColumns;
constexpr int kTokensAtOnce = kQuantBlock / kTokenThreads, kTokensOfThread = 2;
constexpr int kTokensOfBlock = kTokensAtOnce * kTokensOfThread;

// Stores the codes of this thread's columns. The first lane of a tile also stores the tile's scale.
PLUMB_DEVICE void store_quantized(const plumb_concat_and_cache_ds_mla_params& p,
                                  const LaneColumns& bits, float amax, plumb_format dialect,
                                  bool whole, int lane, std::uint8_t* entry) {
  const float exact = at_least(p.scale_floor, amax / quantisation_largest(dialect));
  const bool power = p.scale_form == PLUMB_SCALE_POWER_OF_TWO;
  const float scale = power ? decode_ue8m0(encode_ue8m0(exact)) : exact;
  if (group_lane(kLanes) == 0) reinterpret_cast<float*>(entry + kScalesAt)[lane / kLanes] = scale;
  float x[kLaneColumns];
  decode_columns(bits, x);
  divide_columns(x, scale);
  store_codes(entry + lane * kLaneColumns, encode_e4m3x16(x, dialect), whole);
}

PLUMB_DEVICE void cache_tokens(const plumb_concat_and_cache_ds_mla_params& p, plumb_format dialect,
                               bool whole) {
  const int lane = thread_index() % kTokenThreads, rope_column = lane * kBf16x8;
  const bool has_rope = rope_column < kRope;
  const std::int64_t first =
      std::int64_t{block_index_x()} * kTokensOfBlock + thread_index() / kTokenThreads;
  std::int64_t slots[kTokensOfThread];
  LaneColumns bits[kTokensOfThread];
  Bf16x8 rope[kTokensOfThread];
  PLUMB_UNROLL
  for (int i = 0; i < kTokensOfThread; ++i) {
    const std::int64_t token = first + i * kTokensAtOnce;
    const bool live = token < p.tokens;
    slots[i] = slot_of(p, token);
    bits[i] = load_columns(p.kv_c + token * p.kv_c_row_stride + lane * kLaneColumns, live, whole);
    rope[i] = load_bf16x8(p.k_pe + token * p.k_pe_row_stride + rope_column,
                          live && has_rope ? kBf16x8 : 0, whole);
  }
  PLUMB_UNROLL
  for (int i = 0; i < kTokensOfThread; ++i) {
    const float amax = columns_amax(bits[i], kLanes);
    if (slots[i] == kNoSlot) continue;
    const auto [block, offset] = place_of(slots[i], static_cast<int>(p.cache.page));
    std::uint8_t* entry = p.cache.data + block * p.cache.block_stride_bytes + offset * kEntryBytes;
    store_quantized(p, bits[i], amax, dialect, whole, lane, entry);
    if (!has_rope) continue;
    auto* const to = reinterpret_cast<std::uint16_t*>(entry + kRopeAt) + rope_column;
    store_bf16x8(to, rope[i], kBf16x8, whole);
  }
}

// The dialect is a constant in each branch, so that no code of the other encoder is compiled in.
template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kQuantBlock, 8) void concat_and_cache_ds_mla_kernel(
    plumb_concat_and_cache_ds_mla_params p) {
  if (p.cache.dialect == PLUMB_E4M3FN) return cache_tokens(p, PLUMB_E4M3FN, whole);
  cache_tokens(p, PLUMB_E4M3FNUZ, whole);
}

plumb_status launch_concat_and_cache_ds_mla(const void* params) {
  const auto& p = *static_cast<const plumb_concat_and_cache_ds_mla_params*>(params);
  if (p.tokens < 0 || p.kv_c_row_stride < kLatent || p.k_pe_row_stride < kRope ||
      !legal_page(p.cache) || p.cache.block_stride_bytes < p.cache.page * kEntryBytes ||
      p.cache.block_stride_bytes % 4 != 0 || !(p.scale_floor > 0)) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.kv_c || !p.k_pe || !p.slot_mapping || !p.cache.data) return PLUMB_INVALID_ARGUMENT;
  const LaunchShape shape{(p.tokens + kTokensOfBlock - 1) / kTokensOfBlock, 1, kQuantBlock, 0};
  if (are_whole_rows(p.kv_c, p.kv_c_row_stride) && are_whole_rows(p.k_pe, p.k_pe_row_stride) &&
      is_whole_cache(p.cache)) {
    return PLUMB_LAUNCH(concat_and_cache_ds_mla_kernel<true>, shape, p.stream, p);
  }
  return PLUMB_LAUNCH(concat_and_cache_ds_mla_kernel<false>, shape, p.stream, p);
}

}  // namespace

OpEntry concat_and_cache_ds_mla() {
  return {"concat_and_cache_ds_mla", launch_concat_and_cache_ds_mla, group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
