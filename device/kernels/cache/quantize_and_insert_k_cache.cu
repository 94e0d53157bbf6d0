// SPDX-License-Identifier: Apache-2.0
//
// quantize_and_insert_k_cache: 32 lanes take a token, 16 columns each (group_quant.h). Four lanes
// make a group of 64 columns. Seven groups are quantised, the last (RoPE) is copied. A block takes
// kTokensOfBlock tokens. A thread has the same columns of every kTokensAtOnce-th token, and loads
// all before it uses the first. Legal: any tokens that fit the grid's x, any page.
#include "device/kernels/quantization/group_quant.h"
#include "device/kernels/sparse_mla/mla_cache.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kGroups = kValueDim / kGroup;
constexpr int kRopeGroup = kGroups - 1;  // bf16, without a scale
constexpr int kRopeAt = kRopeGroup * kGroup;

constexpr int kLanes = kGroup / kLaneColumns, kTokenThreads = kGroups * kLanes;
constexpr int kTokensAtOnce = kQuantBlock / kTokenThreads, kTokensOfThread = 4;
constexpr int kTokensOfBlock = kTokensAtOnce * kTokensOfThread;

// Where a token's codes and scales lie in the cache.
struct SlotBytes {
  std::uint8_t* data;
  std::uint8_t* scales;
};

PLUMB_DEVICE SlotBytes bytes_of(const plumb_paged_cache& cache, std::int64_t slot) {
  const auto [number, offset] = place_of(slot, static_cast<int>(cache.page));
  std::uint8_t* block = cache.data + number * cache.block_stride_bytes;
  return {block + offset * kTokenBytes, block + cache.page * kTokenBytes + offset * kScaleBytes};
}

// Stores the codes of this thread's columns. The first lane of a group also stores the group's
// scale. The product with the inverse of a power of two equals the quotient, bit for bit.
PLUMB_DEVICE void store_quantized(const LaneColumns& bits, float amax, float amax_floor,
                                  plumb_format dialect, bool whole, std::uint8_t* data,
                                  std::uint8_t* scale_byte) {
  const std::uint8_t byte =
      encode_ue8m0(at_least(amax_floor, amax) / quantisation_largest(dialect));
  const float inverse = decode_ue8m0(static_cast<std::uint8_t>(254 - byte));
  if (group_lane(kLanes) == 0) *scale_byte = byte;
  float x[kLaneColumns];
  decode_columns(bits, x);
  PLUMB_UNROLL
  for (int i = 0; i < kLaneColumns; ++i) x[i] *= inverse;
  store_codes(data, encode_e4m3x16(x, dialect), whole);
}

PLUMB_DEVICE void store_rope(const LaneColumns& bits, bool whole, std::uint8_t* data) {
  auto* const to = reinterpret_cast<std::uint16_t*>(data);
  store_bf16x8(to, bits.at[0], kBf16x8, whole);
  store_bf16x8(to + kBf16x8, bits.at[1], kBf16x8, whole);
}

PLUMB_DEVICE void insert_tokens(const plumb_quantize_and_insert_k_cache_params& p,
                                plumb_format dialect, bool whole) {
  const int lane = thread_index() % kTokenThreads, group = lane / kLanes;
  const std::int64_t first =
      std::int64_t{block_index_x()} * kTokensOfBlock + thread_index() / kTokenThreads;
  std::int64_t slots[kTokensOfThread];
  LaneColumns bits[kTokensOfThread];
  PLUMB_UNROLL
  for (int i = 0; i < kTokensOfThread; ++i) {
    const std::int64_t token = first + i * kTokensAtOnce;
    slots[i] = slot_of(p, token);
    bits[i] =
        load_columns(p.kv + token * p.kv_row_stride + lane * kLaneColumns, token < p.tokens, whole);
  }
  PLUMB_UNROLL
  for (int i = 0; i < kTokensOfThread; ++i) {
    const float amax = columns_amax(bits[i], kLanes);
    if (slots[i] == kNoSlot) continue;
    const SlotBytes slot = bytes_of(p.cache, slots[i]);
    if (group < kRopeGroup) {
      store_quantized(bits[i], amax, p.amax_floor, dialect, whole, slot.data + lane * kLaneColumns,
                      slot.scales + group);
      continue;
    }
    store_rope(bits[i], whole, slot.data + kRopeAt + group_lane(kLanes) * 2 * kLaneColumns);
    if (group_lane(kLanes) == 0 && p.pad == PLUMB_PAD_ZERO) slot.scales[kRopeGroup] = 0;
  }
}

// The dialect is a constant in each branch, so that no code of the other encoder is compiled in.
template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kQuantBlock, 8) void quantize_and_insert_k_cache_kernel(
    plumb_quantize_and_insert_k_cache_params p) {
  if (p.cache.dialect == PLUMB_E4M3FN) return insert_tokens(p, PLUMB_E4M3FN, whole);
  insert_tokens(p, PLUMB_E4M3FNUZ, whole);
}

plumb_status launch_quantize_and_insert_k_cache(const void* params) {
  const auto& p = *static_cast<const plumb_quantize_and_insert_k_cache_params*>(params);
  const std::int64_t least_stride = p.cache.page * (kTokenBytes + kScaleBytes);
  if (p.tokens < 0 || p.kv_row_stride < kValueDim || !legal_page(p.cache) ||
      p.cache.block_stride_bytes < least_stride || p.cache.block_stride_bytes % 2 != 0 ||
      !(p.amax_floor > 0)) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.kv || !p.slot_mapping || !p.cache.data) return PLUMB_INVALID_ARGUMENT;
  const LaunchShape shape{(p.tokens + kTokensOfBlock - 1) / kTokensOfBlock, 1, kQuantBlock, 0};
  if (are_whole_rows(p.kv, p.kv_row_stride) && is_whole_cache(p.cache)) {
    return PLUMB_LAUNCH(quantize_and_insert_k_cache_kernel<true>, shape, p.stream, p);
  }
  return PLUMB_LAUNCH(quantize_and_insert_k_cache_kernel<false>, shape, p.stream, p);
}

}  // namespace

OpEntry quantize_and_insert_k_cache() {
  return {"quantize_and_insert_k_cache", launch_quantize_and_insert_k_cache,
          group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
