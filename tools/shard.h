// SPDX-License-Identifier: Apache-2.0
//
// Divides a run among machines or jobs: by --shard I/N, or by the variables of GoogleTest
// (GTEST_TOTAL_SHARDS, GTEST_SHARD_INDEX, and GTEST_SHARD_STATUS_FILE, which acknowledges them). So
// test runners that divide a GoogleTest program can also divide a run of plumb.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace plumb::tools {

struct Shard {
  std::size_t index = 0, total = 1;
};
// "2/4" is the second of four shards: index 1. Throws UsageError for other text.
Shard shard_of(const std::string& text);

// nullopt if the environment asks for no shard. Throws UsageError if the variables are not numbers,
// or the index is not below the total. Creates the status file.
std::optional<Shard> shard_of_environment();

// Numbers of the shard's tasks, ascending. The tasks are assigned in order of decreasing cost, each
// to the shard with the least total cost so far. Each task is in exactly one shard, the same on
// every machine.
std::vector<std::size_t> numbers_in(const Shard& shard, const std::vector<double>& costs);

}  // namespace plumb::tools
