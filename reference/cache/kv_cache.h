// SPDX-License-Identifier: Apache-2.0
//
// Layouts of latent caches in blocks of `page` tokens, and of workspaces of bf16 keys:
//  v4    k = v = 448 fp8 values with one UE8M0 scale per 64, and 64 bf16 values (RoPE). A block
//        holds the data of all its tokens (576 bytes each), then all scales (7 bytes and a pad byte
//        each).
//  v32   k = 512 fp8 values with one fp32 scale per 128, and 64 bf16 values (RoPE); v = the first
//        512 of k. Each token has 656 bytes: codes, scales, RoPE.
//  rows  k in bf16, 512 or 576 values; v = the first 512. A block is one row.
#pragma once

#include <cstdint>
#include <span>

#include "reference/formats/e4m3.h"

namespace plumb::reference {

inline constexpr std::int64_t kMlaDim = 512;  // length of v in every layout, and of k in v4
inline constexpr std::int64_t kMlaRope = 64;  // RoPE values: the last ones of k
inline constexpr std::int64_t kMlaNope = kMlaDim - kMlaRope;  // v4: values stored in fp8
inline constexpr std::int64_t kMlaScaleGroup = 64;            // v4: fp8 values per scale
inline constexpr std::int64_t kMlaTokenBytes = 576;
inline constexpr std::int64_t kMlaScaleBytes = 8;
inline constexpr std::int64_t kV32Dim = kMlaDim + kMlaRope;  // length of k in v32
inline constexpr std::int64_t kV32ScaleGroup = 128;
inline constexpr std::int64_t kV32Scales = kMlaDim / kV32ScaleGroup;
inline constexpr std::int64_t kV32TokenBytes = 656;

enum class KvLayout { v4, v32, rows };

// How a kernel of v32 turns a code and its fp32 scale into bf16, the format of its products. All
// kernels use one of these roundings, so it is part of the exact value and not of the error. All
// three agree if the scale is a power of two.
enum class ScaleReading {
  fp32,  // bf16(code * scale), the product in fp32
  bf16,  // bf16(code * bf16(scale))
  e8m0   // code * 2^floor(log2(scale))
};

// One cache. Slot = block * page + offset. A null `data` means that the cache is absent.
struct KvCache {
  const std::uint8_t* data = nullptr;
  std::int64_t block_stride_bytes = 0;  // >= page * 584 (v4), page * 656 (v32), one row (rows)
  std::int64_t num_blocks = 0;
  std::int64_t page = 1;  // tokens per block; rows: 1
  Dialect dialect = Dialect::e4m3fn;
  KvLayout layout = KvLayout::v4;
  ScaleReading scale_reading = ScaleReading::fp32;  // v32
  std::int64_t row_dims = kMlaDim;                  // rows: length of k

  std::int64_t slots() const { return data == nullptr ? 0 : num_blocks * page; }
  std::int64_t key_dims() const;
};

// Block stride that engines use. v4: page * 584 rounded up to a multiple of 576; v32: page * 656.
std::int64_t kv_block_bytes(std::int64_t page, KvLayout layout = KvLayout::v4);

// Writes the key_dims() values of a token's key; v is the first 512 of them. The values are exact
// for v4 and rows, and rounded as `scale_reading` says for v32. NaN codes and scales (v4: byte 255)
// give NaN.
void decode_token(const KvCache& cache, std::int64_t slot, double* values);

// Writes a token of v4 as the cache's writers do: scale 2^ceil(log2(max(amax, 1e-4) / largest))
// with largest = 448 (e4m3fn) or 224 (e4m3fnuz), codes rounded to nearest even, pad byte 0, RoPE
// part rounded to bf16. `block` points to the first byte of the token's block. Values must be
// finite.
void encode_token(std::uint8_t* block, std::int64_t page, std::int64_t offset, Dialect dialect,
                  std::span<const float, kMlaDim> values);

// Writes a token of v32 to `token`. The scale of each group of 128 values is max(amax / largest,
// 2^-126) in fp32, as the serving engine's writer stores it, or that number rounded up to a power
// of two, as FlashMLA's tests store it.
enum class ScaleWriting { fp32, power_of_two };
void encode_v32_token(std::uint8_t* token, Dialect dialect, ScaleWriting writing,
                      std::span<const float, kV32Dim> values);

}  // namespace plumb::reference
