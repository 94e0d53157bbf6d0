// SPDX-License-Identifier: Apache-2.0
//
// quantize_and_insert_k_cache: the bytes that the V4 cache's writer stores for a token (operations
// spec, 1.1 and 2.11).
#pragma once

#include "reference/cache/cache_entry.h"
#include "reference/quantization/group_quant.h"

namespace plumb::reference {

// How the first 448 columns are quantised. group_scale_bytes and group_codes compute the bytes.
GroupQuant k_cache_quant(Dialect dialect, double amax_floor);
// Offsets of 448 codes, 7 scale bytes and 128 copied bytes of RoPE. If `pad_is_written`, the pad
// byte is among the copied bytes and becomes 0.
CacheEntry k_cache_entry(std::int64_t page, std::int64_t offset, bool pad_is_written);
std::vector<std::uint8_t> k_cache_copied(const std::uint16_t* kv, bool pad_is_written);

}  // namespace plumb::reference
