// SPDX-License-Identifier: Apache-2.0
//
// Where a cache stores the bytes of one token. A writer may write these bytes and no others.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::reference {

// Byte offsets from the first byte of the token's block, in logical order: codes[i] is the offset
// of code i.
struct CacheEntry {
  std::vector<std::int64_t> codes, scales, copied;
};

// Appends `count` consecutive offsets: begin, begin + 1, ...
void append_range(std::vector<std::int64_t>& offsets, std::int64_t begin, std::int64_t count);

}  // namespace plumb::reference
