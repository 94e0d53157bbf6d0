// SPDX-License-Identifier: Apache-2.0
//
// One share of a run among several machines or jobs: --shard I/N, or the variables that GoogleTest
// reads: GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX, and GTEST_SHARD_STATUS_FILE, which says that
// they were read. Test runners that know how to divide a GoogleTest program divide a run of plumb,
// too.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace plumb::tools {

struct Shard {
  std::size_t index = 0, total = 1;
};
// "2/4" is the second of four: index 1. Throws UsageError for anything else.
Shard shard_of(const std::string& text);

// Nothing if the environment asks for no share. Throws UsageError where the variables are no
// numbers, or the index is not below the total. Creates the status file.
std::optional<Shard> shard_of_environment();

// The numbers of the tasks that the shard has, ascending: each task, the dearest first, goes to the
// shard whose tasks cost least so far. Every task is in one shard, and the same one everywhere.
std::vector<std::size_t> numbers_in(const Shard& shard, const std::vector<double>& costs);

}  // namespace plumb::tools
