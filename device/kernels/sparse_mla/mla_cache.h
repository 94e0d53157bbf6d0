// SPDX-License-Identifier: Apache-2.0
//
// Reads tokens of a paged latent cache, 64 dimensions at a time. The last 64 dimensions are bf16,
// the others fp8. V4: a block has the data of all its tokens (448 fp8 and 64 bf16, 576 bytes each),
// then the scales of all its tokens (7 UE8M0 bytes and a pad byte each). V32: each token has 512
// fp8, 4 fp32 scales and 64 bf16 in a row.
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <cstdint>

#include "device/kernels/bf16.h"
#include "device/kernels/fp8.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kValueDim = 512;  // a token's value is the first 512 dimensions of its key
constexpr int kGroup = 64;      // dimensions that a thread reads at a time; V4 has a scale for each
constexpr int kTokenBytes = 576, kScaleBytes = 8;
constexpr int kV32TokenBytes = 656, kV32ScaleGroups = 2;  // groups that share a scale in V32

// Number of groups of a key.
PLUMB_DEVICE inline int key_groups(const plumb_mla_cache& cache) {
  return cache.layout == PLUMB_MLA_V32 ? 9 : 8;
}

// Where the parts of a token start.
struct TokenAddress {
  const std::uint8_t* codes;
  const std::uint8_t* scales;
  const std::uint8_t* rope;
};

PLUMB_DEVICE inline TokenAddress locate(const plumb_mla_cache& cache, std::int64_t block,
                                        std::int64_t offset) {
  const std::uint8_t* base = cache.data + block * cache.block_stride_bytes;
  if (cache.layout == PLUMB_MLA_V32) {
    const std::uint8_t* token = base + offset * kV32TokenBytes;
    return {token, token + 512, token + 528};
  }
  const std::uint8_t* token = base + offset * kTokenBytes;
  const std::int64_t scales = cache.page * kTokenBytes + offset * kScaleBytes;
  return {token, base + scales, token + 448};
}

PLUMB_DEVICE inline TokenAddress locate(const plumb_mla_cache& cache, std::int32_t slot) {
  const int page = static_cast<int>(cache.page);
  return locate(cache, slot / page, slot % page);
}

// A scale of V32, as `reading` wants it: unchanged, rounded to bf16, or without its mantissa.
PLUMB_DEVICE inline float read_scale(float stored, plumb_scale_reading reading) {
  if (reading == PLUMB_SCALE_BF16) return load_bf16(store_bf16(stored));
  if (reading == PLUMB_SCALE_FP32) return stored;
  return decode_ue8m0(static_cast<std::uint8_t>(float_bits(stored) >> 23 & 0xffU));
}

PLUMB_DEVICE inline float scale_of(const plumb_mla_cache& cache, const TokenAddress& token,
                                   int group) {
  if (cache.layout == PLUMB_MLA_V4) return decode_ue8m0(token.scales[group]);
  const auto* scales = reinterpret_cast<const float*>(token.scales);
  return read_scale(scales[group / kV32ScaleGroups], cache.scale_reading);
}

// One group of a token as bf16. Exact, unless the scale is no power of two or the value leaves the
// range of bf16.
PLUMB_DEVICE inline void load_group(const plumb_mla_cache& cache, const TokenAddress& token,
                                    int group, plumb_format dialect, std::uint16_t* to) {
  if (group == key_groups(cache) - 1) {
    const auto* rope = reinterpret_cast<const std::uint16_t*>(token.rope);
    for (int d = 0; d < kGroup; ++d) to[d] = rope[d];
    return;
  }
  const std::uint8_t* codes = token.codes + group * kGroup;
  const float scale = scale_of(cache, token, group);
  for (int d = 0; d < kGroup; ++d) to[d] = store_bf16(decode_e4m3(codes[d], dialect) * scale);
}

inline bool legal_cache(const plumb_mla_cache& cache) {
  const bool v32 = cache.layout == PLUMB_MLA_V32;
  const std::int64_t token_bytes = v32 ? kV32TokenBytes : kTokenBytes + kScaleBytes;
  return (v32 || cache.layout == PLUMB_MLA_V4) && cache.page >= 1 && fits_int(cache.page) &&
         cache.num_blocks >= 1 && cache.block_stride_bytes % (v32 ? 4 : 2) == 0 &&
         cache.block_stride_bytes >= cache.page * token_bytes &&
         (cache.dialect == PLUMB_E4M3FN || cache.dialect == PLUMB_E4M3FNUZ);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
