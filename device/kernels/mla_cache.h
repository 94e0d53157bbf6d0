// SPDX-License-Identifier: Apache-2.0
//
// Reads tokens of a paged V4 cache. A block holds the data of all its tokens (448 fp8 and 64 bf16,
// 576 bytes each), then the scales of all its tokens (7 UE8M0 bytes and a pad byte each).
#pragma once

#include <cstdint>

#include "device/kernels/bf16.h"
#include "device/kernels/fp8.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kHeadDim = 512;    // 448 without and 64 with rotary embedding; K and V are the same
constexpr int kScaleGroup = 64;  // dimensions under one scale; the last group is bf16 and has none
constexpr int kGroups = kHeadDim / kScaleGroup;
constexpr int kRopeGroup = kGroups - 1;
constexpr int kTokenBytes = 576, kScaleBytes = 8;

// Where a token's data and its scales start.
struct TokenAddress {
  const std::uint8_t* data;
  const std::uint8_t* scales;
};

PLUMB_DEVICE inline TokenAddress locate(const plumb_mla_cache& cache, std::int32_t slot) {
  const std::int64_t block = slot / cache.page, offset = slot % cache.page;
  const std::uint8_t* base = cache.data + block * cache.block_stride_bytes;
  return {base + offset * kTokenBytes,
          base + std::int64_t{cache.page} * kTokenBytes + offset * kScaleBytes};
}

// One group of 64 dimensions as bf16. Exact: e4m3 times a power of two, within the range of bf16.
PLUMB_DEVICE inline void load_group(const TokenAddress& token, int group, plumb_format dialect,
                                    std::uint16_t* to) {
  const std::uint8_t* from = token.data + group * kScaleGroup;
  if (group == kRopeGroup) {
    const auto* rope = reinterpret_cast<const std::uint16_t*>(from);
    for (int d = 0; d < kScaleGroup; ++d) to[d] = rope[d];
    return;
  }
  const float scale = decode_ue8m0(token.scales[group]);
  for (int d = 0; d < kScaleGroup; ++d) to[d] = store_bf16(decode_e4m3(from[d], dialect) * scale);
}

PLUMB_DEVICE inline void zero_group(std::uint16_t* to) {
  for (int d = 0; d < kScaleGroup; ++d) to[d] = 0;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
