// SPDX-License-Identifier: Apache-2.0
#include "tools/shard.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "tools/commands.h"

namespace plumb::tools {

namespace {

std::size_t number_in(const char* variable, std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(fmt::format("{}={}: not a number", variable, text));
  }
  return number;
}

}  // namespace

std::optional<Shard> shard_of_environment() {
  const char* total = std::getenv("GTEST_TOTAL_SHARDS");
  const char* index = std::getenv("GTEST_SHARD_INDEX");
  if (total == nullptr && index == nullptr) return std::nullopt;
  if (total == nullptr || index == nullptr) {
    throw UsageError("GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX need each other");
  }
  const Shard shard{number_in("GTEST_SHARD_INDEX", index), number_in("GTEST_TOTAL_SHARDS", total)};
  if (shard.index >= shard.total) {
    throw UsageError(
        fmt::format("GTEST_SHARD_INDEX={} is not below GTEST_TOTAL_SHARDS={}", index, total));
  }
  if (const char* status = std::getenv("GTEST_SHARD_STATUS_FILE")) std::ofstream(status).flush();
  return shard;
}

}  // namespace plumb::tools
