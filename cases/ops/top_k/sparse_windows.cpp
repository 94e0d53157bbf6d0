// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/top_k/sparse_windows.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kMostColumns = std::numeric_limits<std::int32_t>::max();

}  // namespace

SparseWindows::SparseWindows(const Row& row, std::int64_t rows)
    : windows_{.rows = rows,
               .requests = row.integer("requests"),
               .length = row.integer("length"),
               .length_step = row.integer("length_step"),
               .request_step = row.integer("request_step"),
               .lead = row.integer("lead"),
               .gap = row.integer("gap")} {
  if (windows_.columns() > kMostColumns) {
    throw BadRow(row.where + ": columns do not fit into int32");
  }
}

Window SparseWindows::of(const Step& step, std::int64_t row) const {
  if (row >= step.live) return {windows_.columns(), windows_.columns()};
  const Window window = windows_.of(step, row);
  return {window.start, std::max<std::int64_t>(window.end, -1)};
}

std::int64_t SparseWindows::length(const Step& step, std::int64_t row) const {
  const Window window = of(step, row);
  return std::max<std::int64_t>(window.end - window.start, 0);
}

std::vector<Parameter> sparse_window_parameters() {
  return {{"requests", 1, 1, 1024, "requests in one call, each with its own window of columns"},
          {"length", 512, 0, kMostColumns, "longest window, in columns"},
          {"length_step", 0, 0, 65536, "how much shorter each earlier row of a request is"},
          {"request_step", 0, 0, 1 << 23, "how much shorter each further request's window is"},
          {"lead", 0, 0, kMostColumns, "columns in front of the first window"},
          {"gap", 0, 0, 1 << 23, "columns behind every window"}};
}

ShuffledNumbers::ShuffledNumbers(std::uint64_t seed, std::int64_t count)
    : count_(std::max<std::int64_t>(count, 1)) {
  const auto choices = static_cast<std::uint64_t>(count_);
  factor_ = 1 + static_cast<std::int64_t>(random_bits(seed, 0) % choices);
  turn_ = static_cast<std::int64_t>(random_bits(seed, 1) % choices);
  while (std::gcd(factor_, count_) != 1) ++factor_;
}

}  // namespace plumb::cases
