// SPDX-License-Identifier: Apache-2.0
//
// quantize_and_insert_k_cache: eight lanes per group of 64 columns (group_quant.h), a vector each;
// eight groups per token: seven are quantised, the last (RoPE) is copied. A block takes
// kTokensOfBlock tokens, each thread the same columns of every kTokensAtOnce-th of them, all loaded
// before the first is needed. Legal: any tokens that fit the grid's x, any page.
#include "device/kernels/group_quant.h"
#include "device/kernels/mla_cache.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr float kAmaxFloor = 1e-4F;
constexpr int kGroups = kValueDim / kGroup;
constexpr int kRopeGroup = kGroups - 1;  // bf16, without a scale

constexpr int kTokenThreads = kGroups * kGroupLanes;
constexpr int kTokensAtOnce = kQuantBlock / kTokenThreads, kTokensOfThread = 4;
constexpr int kTokensOfBlock = kTokensAtOnce * kTokensOfThread;

// Where a token's slot lies.
struct SlotBytes {
  std::uint8_t* data;
  std::uint8_t* scales;
};

PLUMB_DEVICE SlotBytes bytes_of(const plumb_paged_cache& cache, std::int64_t slot) {
  const auto [number, offset] = place_of(slot, cache.page);
  std::uint8_t* block = cache.data + number * cache.block_stride_bytes;
  return {block + offset * kTokenBytes,
          block + std::int64_t{cache.page} * kTokenBytes + offset * kScaleBytes};
}

// A quotient by a power of two is the product with its inverse, bit for bit.
PLUMB_DEVICE void quantize_group(const Bf16x8& bits, float amax, plumb_format dialect, bool whole,
                                 std::uint8_t* data, std::uint8_t* scale_byte) {
  const std::uint8_t byte =
      encode_ue8m0(at_least(kAmaxFloor, amax) / quantisation_largest(dialect));
  const float inverse = decode_ue8m0(static_cast<std::uint8_t>(254 - byte));
  if (group_lane() == 0) *scale_byte = byte;
  float x[kBf16x8];
  decode_bf16x8(bits, x);
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; ++i) x[i] *= inverse;
  store_codes(data + group_column(0), encode_e4m3x8(x, dialect), whole);
}

template <bool whole>
PLUMB_KERNEL void quantize_and_insert_k_cache_kernel(plumb_quantize_and_insert_k_cache_params p) {
  const int group = thread_index() % kTokenThreads / kGroupLanes;
  const std::int64_t first = std::int64_t{block_index_x()} * kTokensOfBlock;
  std::int64_t slots[kTokensOfThread];
  GroupVectors<1> bits[kTokensOfThread];
  PLUMB_UNROLL
  for (int i = 0; i < kTokensOfThread; ++i) {
    const std::int64_t token = first + i * kTokensAtOnce + thread_index() / kTokenThreads;
    slots[i] = token < p.tokens ? p.slot_mapping[token] : -1;
    const std::uint16_t* x = p.kv + token * p.kv_row_stride + group * kGroup;
    bits[i] = load_group<1>(x, token < p.tokens, whole);
  }
  PLUMB_UNROLL
  for (int i = 0; i < kTokensOfThread; ++i) {
    const float amax = group_amax(bits[i]);
    if (slots[i] < 0) continue;
    const SlotBytes slot = bytes_of(p.cache, slots[i]);
    std::uint8_t* data = slot.data + group * kGroup;
    if (group < kRopeGroup) {
      quantize_group(bits[i].at[0], amax, p.cache.dialect, whole, data, slot.scales + group);
      continue;
    }
    store_bf16x8(reinterpret_cast<std::uint16_t*>(data) + group_column(0), bits[i].at[0], kBf16x8,
                 whole);
    if (group_lane() == 0) slot.scales[kRopeGroup] = 0;
  }
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
  const LaunchShape shape{(p.tokens + kTokensOfBlock - 1) / kTokensOfBlock, 1, kQuantBlock, 0};
  if (are_whole_rows(p.kv, p.kv_row_stride) && is_whole_cache(p.cache)) {
    return PLUMB_LAUNCH(quantize_and_insert_k_cache_kernel<true>, shape, p.stream, p);
  }
  return PLUMB_LAUNCH(quantize_and_insert_k_cache_kernel<false>, shape, p.stream, p);
}

}  // namespace

plumb_op_entry quantize_and_insert_k_cache() {
  return {"quantize_and_insert_k_cache", launch_quantize_and_insert_k_cache,
          group_quant_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
