// SPDX-License-Identifier: Apache-2.0
//
// Where a cache keeps the bytes of one token: what a writer owns, and all that it may touch.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

// Offsets from the first byte of the token's block, in logical order: byte i of `codes` is code i.
struct CacheEntry {
  std::vector<std::int64_t> codes, scales, copied;
};

// Appends begin, begin + 1, ..., count of them.
void append_range(std::vector<std::int64_t>& offsets, std::int64_t begin, std::int64_t count);

}  // namespace plumb::reference
