// SPDX-License-Identifier: Apache-2.0
//
// Calls of rms_norm whose rows are functions of a request number, so that a request's row can be
// placed anywhere in any batch.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/trace/example_trace.h"

namespace plumb::tests {

inline constexpr int kRowColumns = 64;

// The weights do not depend on the batch. `changed`: this row of the batch gets one element that is
// `steps` bf16 steps too large. The kernel declares sums in bf16, so one step is within its errors.
inline ExampleStep::Json& norm_of_rows(ExampleStep& step, const std::vector<int>& requests,
                                       std::int64_t layer = 0, int changed = -1, int steps = 1) {
  std::vector<std::uint16_t> x, weight, out;
  for (int i = 0; i < kRowColumns; ++i) {
    weight.push_back(reference::encode_bf16(static_cast<float>(1 + 0.4 * std::cos(i))));
  }
  for (const int request : requests) {
    const std::size_t row = x.size();
    double sum = 0;
    for (int i = 0; i < kRowColumns; ++i) {
      x.push_back(reference::encode_bf16(static_cast<float>(std::sin(i * i + 0.37 * request) * 2)));
      const double number = reference::decode_bf16(x.back());
      sum += number * number;
    }
    for (std::size_t i = 0; i < kRowColumns; ++i) {
      const double value = reference::decode_bf16(x[row + i]) /
                           std::sqrt(sum / kRowColumns + 1e-6) * reference::decode_bf16(weight[i]);
      out.push_back(reference::encode_bf16(static_cast<float>(value)));
    }
  }
  if (changed >= 0) {
    out[static_cast<std::size_t>(changed * kRowColumns + 5)] += static_cast<std::uint16_t>(steps);
  }
  const auto rows = static_cast<std::int64_t>(requests.size());
  step.json["calls"].push_back(
      {{"op", "rms_norm"},
       {"name", "Norm.forward"},
       {"layer", layer},
       {"scalars", {{"eps", 1e-6}}},
       {"numerics", {{"accumulator", "bf16"}}},
       {"before",
        {{"x", step.tensor("bf16", {rows, kRowColumns}, x)},
         {"weight", step.tensor("bf16", {kRowColumns}, weight)}}},
       {"after", {{"out", step.tensor("bf16", {rows, kRowColumns}, out)}}}});
  return step.json["calls"].back();
}

}  // namespace plumb::tests
