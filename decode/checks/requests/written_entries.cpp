// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/requests/written_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "decode/checks/cache_checks.h"
#include "decode/checks/requests/model_entries.h"

namespace plumb::cases {

namespace {

using device::decode::CacheView;

// Slots of each kind of cache that hold another entry than before.
using Slots = std::map<std::pair<std::size_t, std::int64_t>, TagWrite>;
Slots changed_slots(const std::vector<TagWrite>& writes) {
  Slots slots;
  for (const TagWrite& one : writes) {
    const auto [known, is_new] = slots.try_emplace({one.cache, one.slot}, one);
    if (is_new) continue;
    const EntryTag before = known->second.before;
    known->second = one;
    known->second.before = before;
  }
  std::erase_if(slots, [](const auto& slot) {
    return slot.second.before.digest == slot.second.after.digest;
  });
  return slots;
}

bool is_unchanged(const CacheView& cache, std::int64_t slot, const std::vector<std::byte>& before,
                  const std::vector<std::byte>& after) {
  const auto begin = static_cast<std::size_t>(slot / cache.page * cache.block_bytes +
                                              slot % cache.page * cache.entry_bytes);
  const auto bytes = static_cast<std::size_t>(cache.entry_bytes);
  return std::memcmp(before.data() + begin, after.data() + begin, bytes) == 0;
}

}  // namespace

std::optional<WrongPlan> unwritten_entry(const WatchedEngine& watched, const Snapshot& before,
                                         const Snapshot& after,
                                         const std::vector<TagWrite>& writes) {
  const Slots slots = changed_slots(writes);
  if (slots.empty()) return std::nullopt;
  for (const CacheView& cache : watched.engine.caches()) {
    const std::size_t index = index_of_block(watched, cache.data);
    const auto kind = static_cast<std::size_t>(cache.cache);
    for (auto one = slots.lower_bound({kind, 0}); one != slots.end() && one->first.first == kind;
         ++one) {
      const TagWrite& write = one->second;
      if (!is_unchanged(cache, write.slot, before.at(index), after.at(index))) continue;
      return WrongPlan{write.part,
                       fmt::format("{} was not written to slot {} of {}",
                                   name_of_entry(write.after.request, kind, write.after.number),
                                   write.slot, cache.name)};
    }
  }
  return std::nullopt;
}

}  // namespace plumb::cases
