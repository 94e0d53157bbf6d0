// SPDX-License-Identifier: Apache-2.0
#include "device/sim/memory/freed_ranges.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

namespace plumb::device::sim {

namespace {

constexpr std::size_t kMost = 4096;

struct Freed {
  std::mutex mutex;
  std::deque<FreedRange> ranges;  // oldest first
};

// Never destroyed: a device may be destroyed after all static objects.
Freed& freed() {
  static auto* const the_ranges = new Freed;
  return *the_ranges;
}

template <class Matches>
std::optional<FreedRange> newest(const Matches& matches) {
  const std::lock_guard lock(freed().mutex);
  const auto& ranges = freed().ranges;
  const auto found = std::find_if(ranges.rbegin(), ranges.rend(), matches);
  if (found == ranges.rend()) return std::nullopt;
  return *found;
}

}  // namespace

void remember_freed(FreedRange range) {
  const std::lock_guard lock(freed().mutex);
  if (freed().ranges.size() == kMost) freed().ranges.pop_front();
  freed().ranges.push_back(std::move(range));
}

std::optional<FreedRange> find_freed(std::uintptr_t address) {
  return newest(
      [=](const FreedRange& range) { return address >= range.begin && address < range.end; });
}

std::optional<FreedRange> find_freed_at(std::uintptr_t begin) {
  return newest([=](const FreedRange& range) { return range.begin == begin; });
}

}  // namespace plumb::device::sim
