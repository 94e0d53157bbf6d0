// SPDX-License-Identifier: Apache-2.0
//
// The paged latent cache of V4: k = v = 448 fp8 values with one UE8M0 scale per 64, and 64 bf16
// values (RoPE), 584 bytes a token. A block holds the data of all its tokens (576 bytes each), then
// all scales (7 bytes and a pad byte each).
#pragma once

#include <cstdint>
#include <span>

#include "reference/formats/e4m3.h"

namespace plumb::reference {

inline constexpr std::int64_t kMlaDim = 512;        // values of a token
inline constexpr std::int64_t kMlaNope = 448;       // of these in fp8
inline constexpr std::int64_t kMlaScaleGroup = 64;  // fp8 values per scale
inline constexpr std::int64_t kMlaTokenBytes = 576;
inline constexpr std::int64_t kMlaScaleBytes = 8;

// One cache. Slot = block * page + offset. `data` may be null: the cache is absent.
struct KvCache {
  const std::uint8_t* data = nullptr;
  std::int64_t block_stride_bytes = 0;  // >= page * 584
  std::int64_t num_blocks = 0;
  std::int64_t page = 1;  // tokens per block
  Dialect dialect = Dialect::e4m3fn;

  std::int64_t slots() const { return data == nullptr ? 0 : num_blocks * page; }
  const std::uint8_t* token(std::int64_t slot) const;   // 576 bytes
  const std::uint8_t* scales(std::int64_t slot) const;  // 8 bytes
};

// Smallest legal block stride: page * 584 rounded up to a multiple of 576.
std::int64_t kv_block_bytes(std::int64_t page);

// The 512 values of a token, exactly. NaN codes and a scale byte of 255 give NaN.
void decode_token(const KvCache& cache, std::int64_t slot, double* values);

// Writes a token as the cache's writers do: scale 2^ceil(log2(max(amax, 1e-4) / largest)) with
// largest = 448 (e4m3fn) or 224 (e4m3fnuz), nearest even, pad byte 0, RoPE part rounded to bf16.
// `block` is the first byte of the token's block. Values must be finite.
void encode_token(std::uint8_t* block, std::int64_t page, std::int64_t offset, Dialect dialect,
                  std::span<const float, kMlaDim> values);

}  // namespace plumb::reference
