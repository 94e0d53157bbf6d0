// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Index of an allocation in the engine's memory, and in a snapshot of it.
std::size_t index_of_block(const WatchedEngine& watched, const std::uint8_t* address);

// A block that is at two places of block tables without belonging to a prefix that both requests
// share. Block 0 belongs to no request and is ignored.
struct CommonBlock {
  std::int32_t block = 0;
  std::int64_t here = 0, there = 0;  // places in the two requests' tables
};
// `tables`: [requests, width].
std::optional<CommonBlock> block_of_two(std::span<const std::int32_t> tables, std::size_t width);

// Slot of the compressed state that a live token completes, by its position and block table. -1: it
// completes none, or it is a padding token.
std::int64_t compressed_slot(const device::decode::StepPlan& plan,
                             const device::decode::Geometry& geometry, device::decode::Cache cache,
                             std::int64_t token);

// A line about a block of a cache that fills for new requests have changed, although none of their
// plans writes there. nullopt: there is none. `before`, `after`: memory around these fills.
std::optional<std::string> strayed_fill(const WatchedEngine& watched, const Snapshot& before,
                                        const Snapshot& after,
                                        const std::vector<device::decode::StepPlan>& fills);

// Checks that only blocks of the step's live tokens changed, and that two requests have no block in
// common except those of a shared prefix.
void check_caches(WatchedStep& step);

}  // namespace plumb::cases
