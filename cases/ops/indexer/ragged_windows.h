// SPDX-License-Identifier: Apache-2.0
//
// Rows of several requests in one ragged prefill call. The windows of the requests lie side by side
// in the columns (logits, keys); a row's own window is its request's, cut as causal attention cuts
// it. Which request owns which window, and which row has which length, changes with the seed, so
// that a replay cannot live on old starts and ends.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/row.h"

namespace plumb::cases {

struct Window {
  std::int64_t start = 0, end = 0;  // an end in front of its start: empty
};

struct RaggedWindows {
  std::int64_t rows = 0, requests = 1, length = 0, length_step = 0, request_step = 0;
  std::int64_t lead = 0, gap = 0;

  std::int64_t columns() const { return lead + requests * (length + gap); }
  // Of a live row. Rows of a request are consecutive and, but for where they begin, causal: each
  // sees length_step columns more than the one in front of it.
  Window of(const Step& step, std::int64_t row) const;
};

RaggedWindows ragged_windows(const Row& row);
// The parameters that ragged_windows() reads.
std::vector<Parameter> ragged_window_parameters();

}  // namespace plumb::cases
