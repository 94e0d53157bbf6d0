// SPDX-License-Identifier: Apache-2.0
#include "reference/cache/cache_entry.h"

namespace plumb::reference {

void append_range(std::vector<std::int64_t>& offsets, std::int64_t begin, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) offsets.push_back(begin + i);
}

}  // namespace plumb::reference
