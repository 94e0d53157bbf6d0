// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/indexer/ragged_windows.h"

#include "cases/tensors/fill.h"

namespace plumb::cases {

Window RaggedWindows::of(const Step& step, std::int64_t row) const {
  const std::int64_t request = row * requests / step.live;
  const std::int64_t first = (request * step.live + requests - 1) / requests;
  const std::int64_t behind = ((request + 1) * step.live + requests - 1) / requests;
  const std::int64_t own_rows = behind - first;
  const std::int64_t turn = integer(mix(step.seed, 1), request, 0, own_rows - 1);
  const std::int64_t shorter = own_rows - 1 - (row - first + turn) % own_rows;
  const std::int64_t slot = (request + integer(mix(step.seed, 2), 0, 0, requests - 1)) % requests;

  const std::int64_t start = lead + slot * (length + gap);
  return {start, start + length - slot * request_step - shorter * length_step};
}

RaggedWindows ragged_windows(const Row& row) {
  return {.rows = row.integer("rows"),
          .requests = row.integer("requests"),
          .length = row.integer("length"),
          .length_step = row.integer("length_step"),
          .request_step = row.integer("request_step"),
          .lead = row.integer("lead"),
          .gap = row.integer("gap")};
}

std::vector<Parameter> ragged_window_parameters() {
  return {{"rows", 4, 1, 65536, "query rows, dealt out to the requests"},
          {"requests", 1, 1, 1024, "requests in one call, each with its own window of columns"},
          {"length", 2048, 0, 1 << 24, "longest window, in columns"},
          {"length_step", 0, 0, 65536, "how much shorter each earlier row of a request is"},
          {"request_step", 0, 0, 1 << 24, "how much shorter each further request's window is"},
          {"lead", 0, 0, 1 << 24, "garbage columns in front of the first window"},
          {"gap", 0, 0, 1 << 24, "garbage columns behind every window"}};
}

}  // namespace plumb::cases
