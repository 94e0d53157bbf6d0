// SPDX-License-Identifier: Apache-2.0
//
// One share of a run among several machines or jobs, by the variables that GoogleTest reads:
// GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX, and GTEST_SHARD_STATUS_FILE, which says that they were
// read. Test runners that know how to divide a GoogleTest program divide a run of plumb, too.
#pragma once

#include <cstddef>
#include <optional>

namespace plumb::tools {

struct Shard {
  std::size_t index = 0, total = 1;
  bool has(std::size_t task) const { return task % total == index; }
};

// Nothing if the environment asks for no share. Throws UsageError where the variables are no
// numbers, or the index is not below the total. Creates the status file.
std::optional<Shard> shard_of_environment();

}  // namespace plumb::tools
