// SPDX-License-Identifier: Apache-2.0
//
// Expected values and stored results, for tests of the verdict.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "cases/judge/judge.h"
#include "reference/rounding.h"
#include "tests/support/random.h"

namespace plumb::tests {

using cases::Dtype;
using cases::HostTensor;
using cases::TensorReport;
using reference::Estimate;
using reference::Format;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kUnit = reference::kUnitBf16;

struct Shape {
  std::int64_t rows, columns;
};
inline constexpr Shape kWide{128, 512};
inline constexpr Shape kNarrow{4096, 16};  // a bias shows only over many rows

// Normally distributed values. Before the output rounding each has an independent error of `sigma`
// bf16 units.
inline Estimate make_estimate(Shape shape, double sigma, std::uint64_t seed) {
  Estimate estimate;
  estimate.resize(shape.rows, shape.columns);
  Random random(seed);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    double squares = 0;
    for (std::int64_t i = r * shape.columns; i < (r + 1) * shape.columns; ++i) {
      estimate.value[i] = random.normal();
      estimate.sigma[i] = sigma * kUnit * std::abs(estimate.value[i]);
      estimate.worst[i] = kInfinity;
      squares += estimate.sigma[i] * estimate.sigma[i];
    }
    estimate.row_mean_sigma[r] = std::sqrt(squares) / static_cast<double>(shape.columns);
  }
  return estimate;
}

inline void store(HostTensor& tensor, std::int64_t i, double value) {
  const auto bits =
      std::bit_cast<std::uint32_t>(static_cast<float>(reference::nearest(Format::bf16, value)));
  tensor.data<std::uint16_t>()[i] = static_cast<std::uint16_t>(bits >> 16);
}

inline double unchanged(std::int64_t, double value) { return value; }

// The result that a right device stores, if `change` is applied to each value before the rounding.
inline HostTensor make_result(const Estimate& estimate, std::uint64_t seed,
                              const std::function<double(std::int64_t i, double value)>& change) {
  HostTensor got({.name = "out", .dtype = Dtype::bf16, .shape = {estimate.rows, estimate.columns}});
  Random random(seed);
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    store(got, i, change(i, estimate.value[i] + estimate.sigma[i] * random.normal()));
  }
  return got;
}

inline TensorReport judge(const Estimate& estimate, const HostTensor& got) {
  return cases::judge_floats(got, estimate, {}, cases::groups_of(estimate.rows, 64, "block"));
}

// Names of the failed checks, recognised by a word in each failure line.
inline std::string failed_checks(const TensorReport& report) {
  std::string checks;
  for (const std::string& line : report.failures) {
    for (const char* word : {"non-finite", "beyond", "direction", "norm", "biased"}) {
      if (line.find(word) == std::string::npos) continue;
      checks += checks.empty() ? "" : ", ";
      checks += word;
      break;
    }
  }
  return checks;
}

}  // namespace plumb::tests
