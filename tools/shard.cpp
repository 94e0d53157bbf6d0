// SPDX-License-Identifier: Apache-2.0
#include "tools/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <queue>
#include <string_view>
#include <system_error>
#include <utility>

#include "cases/tensors/sort_by.h"
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

Shard shard_of(const std::string& text) {
  const auto refuse = [&] {
    return UsageError(fmt::format("--shard {}: not I/N with 1 <= I <= N, as 2/4", text));
  };
  const auto slash = text.find('/');
  if (slash == std::string::npos) throw refuse();
  std::size_t index = 0, total = 0;
  const auto read = [&](const char* from, const char* to, std::size_t& number) {
    const auto [end, error] = std::from_chars(from, to, number);
    if (error != std::errc() || end != to) throw refuse();
  };
  read(text.data(), text.data() + slash, index);
  read(text.data() + slash + 1, text.data() + text.size(), total);
  if (index < 1 || index > total) throw refuse();
  return {index - 1, total};
}

std::vector<std::size_t> numbers_in(const Shard& shard, const std::vector<double>& costs) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  cases::sort_by(order, [&](std::size_t number) { return -costs[number]; });
  using Load = std::pair<double, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
  for (std::size_t i = 0; i < std::min(shard.total, costs.size()); ++i) lightest.push({0, i});
  std::vector<std::size_t> own;
  for (const std::size_t number : order) {
    const auto [load, index] = lightest.top();
    lightest.pop();
    lightest.push({load + costs[number], index});
    if (index == shard.index) own.push_back(number);
  }
  std::ranges::sort(own);
  return own;
}

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
