// SPDX-License-Identifier: Apache-2.0
//
// Memory that existed earlier in this process: blocks of destroyed devices, and freed blocks whose
// addresses were used again. Tells a kept pointer from a wrong index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace plumb::device::sim {

struct FreedRange {
  std::uintptr_t begin = 0, end = 0;  // without guard zones
  std::string label;
  std::uint64_t memory = 0;  // number of the Memory that it belonged to
};

// Any thread may call these. The last 4096 ranges are kept. The finders return the newest match.
void remember_freed(FreedRange range);
std::optional<FreedRange> find_freed(std::uintptr_t address);
std::optional<FreedRange> find_freed_at(std::uintptr_t begin);

}  // namespace plumb::device::sim
