// SPDX-License-Identifier: Apache-2.0
//
// quantize_and_insert_k_cache: what the V4 cache's writer stores for a token (operations spec, 1.1
// and 2.11).
#pragma once

#include "reference/cache/cache_entry.h"
#include "reference/quantization/group_quant.h"

namespace plumb::reference {

// Of the first 448 columns; group_scale_bytes and group_codes give the bytes.
GroupQuant k_cache_quant(Dialect dialect, double amax_floor);
// 448 codes, 7 scale bytes; copied are 128 bytes of RoPE and, if it is written, the pad byte, which
// becomes 0.
CacheEntry k_cache_entry(std::int64_t page, std::int64_t offset, bool pad_is_written);
std::vector<std::uint8_t> k_cache_copied(const std::uint16_t* kv, bool pad_is_written);

}  // namespace plumb::reference
