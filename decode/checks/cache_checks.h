// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// A block that stands at two places of block tables without being part of a prefix that both
// requests share. Block 0 is nobody's.
struct CommonBlock {
  std::int32_t block = 0;
  std::int64_t here = 0, there = 0;  // places in the tables of both requests
};
// `tables`: [requests, width].
std::optional<CommonBlock> block_of_two(std::span<const std::int32_t> tables, std::size_t width);

// Blocks of the caches that changed belong to live tokens of the step, and no block to two requests
// but as part of a prefix.
void check_caches(WatchedStep& step);

}  // namespace plumb::cases
