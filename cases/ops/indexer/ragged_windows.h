// SPDX-License-Identifier: Apache-2.0
//
// Rows of several requests in one ragged prefill call. The windows of the requests lie side by side
// in the columns (logits, keys). A row's window is that of its request, shortened as in causal
// attention. The seed chooses which request owns which window, and which row has which length, so
// that a replay with starts and ends of an earlier step is wrong.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/row.h"

namespace plumb::cases {

struct Window {
  std::int64_t start = 0, end = 0;  // end < start: the window is empty
};

struct RaggedWindows {
  std::int64_t rows = 0, requests = 1, length = 0, length_step = 0, request_step = 0;
  std::int64_t lead = 0, gap = 0;

  std::int64_t columns() const { return lead + requests * (length + gap); }
  // Window of a live row. Rows of a request are consecutive. Each sees length_step columns more
  // than the row before it, except where the seed lets this order start again.
  Window of(const Step& step, std::int64_t row) const;
};

RaggedWindows ragged_windows(const Row& row);
// The parameters that ragged_windows() reads.
std::vector<Parameter> ragged_window_parameters();

}  // namespace plumb::cases
