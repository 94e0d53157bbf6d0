// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/cache_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumb::cases {

namespace {

using device::decode::CacheView;

bool is_owned(const CacheView& cache, std::int64_t block, const device::decode::StepPlan& plan) {
  const auto& slots = plan.slot_mapping[static_cast<std::size_t>(cache.cache)];
  return std::any_of(slots.begin(), slots.begin() + plan.live_tokens,
                     [&](std::int64_t slot) { return slot >= 0 && slot / cache.page == block; });
}

std::size_t index_of(const WatchedEngine& watched, const std::uint8_t* address) {
  const auto& blocks = watched.engine.memory().blocks();
  const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const auto& block) {
    return block.address == reinterpret_cast<const std::byte*>(address);
  });
  return static_cast<std::size_t>(found - blocks.begin());
}

void check_cache(const CacheView& cache, WatchedStep& step) {
  const auto index = index_of(step.twin, cache.data);
  const auto &before = step.before.at(index), &after = step.after.at(index);
  const std::int64_t bytes = cache.block_bytes;
  for (std::int64_t block = 0; block * bytes < std::ssize(after); ++block) {
    const auto begin = after.begin() + block * bytes;
    if (std::equal(begin, begin + bytes, before.begin() + block * bytes)) continue;
    const bool owned = std::any_of(
        step.plans.begin(), step.plans.end(),
        [&](const device::decode::StepPlan& plan) { return is_owned(cache, block, plan); });
    if (owned) continue;
    step.findings.add(
        Detector::state, step.calls, "", "",
        fmt::format("block {} of {} changed, which no live token owns", block, cache.name));
  }
}

}  // namespace

void check_caches(WatchedStep& step) {
  for (const CacheView& cache : step.twin.engine.caches()) check_cache(cache, step);
}

}  // namespace plumb::cases
