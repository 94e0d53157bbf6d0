// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/cache_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>
#include <vector>

#include "decode/checks/requests/model_entries.h"

namespace plumb::cases {

namespace {

using device::decode::CacheView;

// Slots of a cache that live tokens write.
std::vector<std::int64_t> written_slots(const CacheView& cache,
                                        const device::decode::Geometry& geometry,
                                        const device::decode::StepPlan& plan) {
  const auto which = static_cast<std::size_t>(cache.cache);
  if (!is_compressed(which)) {
    const auto first = plan.slot_mapping[which].begin();
    return {first, first + plan.live_tokens};
  }
  std::vector<std::int64_t> slots;
  for (std::int64_t token = 0; token < plan.live_tokens; ++token) {
    slots.push_back(compressed_slot(plan, geometry, cache.cache, token));
  }
  return slots;
}

using Plans = std::vector<device::decode::StepPlan>;

// Blocks that live tokens of these plans write to.
std::set<std::int64_t> written_blocks(const CacheView& cache,
                                      const device::decode::Geometry& geometry,
                                      const Plans& plans) {
  std::set<std::int64_t> blocks;
  for (const device::decode::StepPlan& plan : plans) {
    for (const std::int64_t slot : written_slots(cache, geometry, plan)) {
      if (slot >= 0) blocks.insert(slot / cache.page);
    }
  }
  return blocks;
}

// Blocks of a cache that differ between two snapshots although none of these plans writes to them.
std::vector<std::int64_t> strayed_blocks(const CacheView& cache, const WatchedEngine& watched,
                                         const Snapshot& before, const Snapshot& after,
                                         const Plans& plans) {
  const auto index = index_of_block(watched, cache.data);
  const std::vector<std::byte>&was = before.at(index), &is = after.at(index);
  const std::set<std::int64_t> owned = written_blocks(cache, watched.engine.geometry(), plans);
  std::vector<std::int64_t> strayed;
  for (std::int64_t block = 0; block * cache.block_bytes < std::ssize(is); ++block) {
    const std::int64_t begin = block * cache.block_bytes;
    const auto bytes = static_cast<std::size_t>(cache.block_bytes);
    const bool same = std::memcmp(is.data() + begin, was.data() + begin, bytes) == 0;
    if (!same && !owned.contains(block)) strayed.push_back(block);
  }
  return strayed;
}

void check_cache(const CacheView& cache, WatchedStep& step) {
  for (const std::int64_t block :
       strayed_blocks(cache, step.twin, step.before, step.after, step.plans)) {
    step.findings.add(
        Detector::state, step.calls, "", "",
        fmt::format("block {} of {} changed, although no live token owns it", block, cache.name));
  }
}

// Two requests may share only the blocks of a common prefix, at equal places in their tables. With
// any other common block, one request overwrites entries of the other. A request that has passed a
// block of its window gives it back, so the block in front may be gone for one of the two.
void check_owners(const CacheView& cache, const device::decode::StepPlan& plan, WatchedStep& step) {
  const auto width =
      static_cast<std::size_t>(step.twin.engine.geometry().blocks_per_request(cache.cache));
  const std::span<const std::int32_t> all =
      plan.block_tables[static_cast<std::size_t>(cache.cache)];
  const auto live = all.first(static_cast<std::size_t>(plan.live_requests) * width);
  const auto common = block_of_two(live, width);
  if (!common) return;
  step.findings.add(Detector::state, step.calls, "", "",
                    fmt::format("block {} of {} belongs to two requests: it is block {} of one "
                                "and block {} of the other",
                                common->block, cache.name, common->there, common->here));
}

}  // namespace

std::size_t index_of_block(const WatchedEngine& watched, const std::uint8_t* address) {
  const auto& blocks = watched.engine.memory().blocks();
  const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const auto& block) {
    return block.address == reinterpret_cast<const std::byte*>(address);
  });
  return static_cast<std::size_t>(found - blocks.begin());
}

std::optional<CommonBlock> block_of_two(std::span<const std::int32_t> tables, std::size_t width) {
  std::unordered_map<std::int32_t, std::size_t> first;  // first place of each block
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (tables[i] == 0) continue;
    const auto [found, fresh] = first.try_emplace(tables[i], i);
    if (fresh) continue;
    const std::size_t there = found->second, place = i % width;
    const bool follows_shared = place == 0 || tables[there - 1] == tables[i - 1] ||
                                tables[there - 1] == 0 || tables[i - 1] == 0;
    const bool shared = there % width == place && follows_shared;
    if (shared) continue;
    return CommonBlock{tables[i], static_cast<std::int64_t>(place),
                       static_cast<std::int64_t>(there % width)};
  }
  return std::nullopt;
}

std::int64_t compressed_slot(const device::decode::StepPlan& plan,
                             const device::decode::Geometry& geometry, device::decode::Cache cache,
                             std::int64_t token) {
  const auto which = static_cast<std::size_t>(cache);
  const std::int64_t tokens = tokens_of_entry(which);
  if (token >= plan.live_tokens) return -1;
  const std::int64_t position = plan.positions[static_cast<std::size_t>(token)];
  if ((position + 1) % tokens != 0) return -1;
  const auto& starts = plan.query_start_loc;
  const std::int64_t row =
      std::upper_bound(starts.begin(), starts.end(), token) - starts.begin() - 1;
  const std::int64_t page = geometry.pages[which], state = position / tokens;
  const auto at = static_cast<std::size_t>(row * geometry.blocks_per_request(cache) + state / page);
  return plan.block_tables[which].at(at) * page + state % page;
}

std::optional<std::string> strayed_fill(const WatchedEngine& watched, const Snapshot& before,
                                        const Snapshot& after,
                                        const std::vector<device::decode::StepPlan>& fills) {
  for (const CacheView& cache : watched.engine.caches()) {
    const auto strayed = strayed_blocks(cache, watched, before, after, fills);
    if (strayed.empty()) continue;
    return fmt::format(
        "block {} of {} changed, although no new request has its entries filled there",
        strayed.front(), cache.name);
  }
  return std::nullopt;
}

void check_caches(WatchedStep& step) {
  std::set<device::decode::Cache> seen;  // layers share block numbers, so each kind is checked once
  for (const CacheView& cache : step.twin.engine.caches()) {
    check_cache(cache, step);
    if (!seen.insert(cache.cache).second) continue;
    for (const device::decode::StepPlan& plan : step.plans) check_owners(cache, plan, step);
  }
}

}  // namespace plumb::cases
