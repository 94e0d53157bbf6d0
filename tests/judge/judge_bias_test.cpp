// SPDX-License-Identifier: Apache-2.0
//
// The bias test on many elements together: a bias too small to show in any element fails, and right
// errors that depend on each other pass.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "cases/judge/judge.h"
#include "tests/support/judge_data.h"

namespace plumb::tests {
namespace judge_bias_test {

using namespace cases;

TEST(JudgeBias, ABiasOfThreeTenthsOfAPercentFailsTheMeanOnly) {
  const Estimate estimate = make_estimate(kNarrow, 0.5, 1);
  for (const double factor : {0.997, 1.003}) {
    const TensorReport report =
        judge(estimate,
              make_result(estimate, 2, [&](std::int64_t, double value) { return value * factor; }));
    EXPECT_EQ(failed_checks(report), "biased");
    const std::string direction = factor < 1 ? "0.3 % too small" : "0.3 % too large";
    EXPECT_NE(report.failures[0].find(direction), std::string::npos) << report.failures[0];
  }
}

TEST(JudgeBias, ATruncatedOutputFailsTheMeanOnly) {
  const Estimate estimate = make_estimate(kNarrow, 0.5, 1);
  const HostTensor got = make_result(estimate, 2, [](std::int64_t, double value) {
    const double rounded = reference::nearest(Format::bf16, value);
    const double step = reference::spacing(Format::bf16, value);
    return std::abs(rounded) > std::abs(value) ? rounded - std::copysign(step, value) : rounded;
  });
  EXPECT_EQ(failed_checks(judge(estimate, got)), "biased");
}

TEST(JudgeBias, ABiasOfOneGroupIsNamed) {
  const Estimate estimate = make_estimate(kNarrow, 0.5, 1);
  const HostTensor got = make_result(estimate, 2, [](std::int64_t i, double value) {
    return i / (16 * 64) == 5 ? value * 0.995 : value;
  });
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report), "biased");
  EXPECT_EQ(report.failures[0].find("out: biased: magnitudes in block 5 are "), 0U)
      << report.failures[0];
}

// Padded rows have equal inputs, and therefore equal errors.
TEST(JudgeBias, RowsThatRepeatOneAreNoEvidenceOfABias) {
  const Estimate one = make_estimate({1, kNarrow.columns}, 0.5, 1);
  Estimate all = make_estimate(kNarrow, 0.5, 1);
  const HostTensor row = make_result(one, 2, unchanged);
  HostTensor got({.name = "out", .dtype = Dtype::bf16, .shape = {kNarrow.rows, kNarrow.columns}});
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const std::int64_t of_row = i % kNarrow.columns;
    all.value[i] = one.value[of_row];
    all.sigma[i] = one.sigma[of_row];
    got.data<std::uint16_t>()[i] = row.data<std::uint16_t>()[of_row];
  }
  for (double& sigma : all.row_mean_sigma) sigma = one.row_mean_sigma[0];
  EXPECT_EQ(failed_checks(judge(all, got)), "");
}

TEST(JudgeBias, ADeclaredBiasHasItsAllowance) {
  Estimate estimate = make_estimate(kNarrow, 0.5, 1);
  const HostTensor got =
      make_result(estimate, 2, [](std::int64_t, double value) { return value * 1.003; });
  for (std::int64_t r = 0; r < estimate.rows; ++r) {
    double sum = 0;
    for (int c = 0; c < 16; ++c) sum += std::abs(estimate.value[r * 16 + c]);
    estimate.row_systematic[r] = 0.003 * sum / 16;
  }
  EXPECT_EQ(failed_checks(judge(estimate, got)), "");
}

// All elements of a row share one error, so the row's mean is as uncertain as one element.
TEST(JudgeBias, CountsCorrelatedErrorsAsOne) {
  constexpr Shape kShape{64, 128};
  int alarms_if_independent = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Estimate estimate = make_estimate(kShape, 1, seed);
    HostTensor got = make_result(estimate, seed, unchanged);
    Random random(seed + 1);
    for (std::int64_t r = 0; r < kShape.rows; ++r) {
      const double error = kUnit * random.normal();
      for (std::int64_t i = r * 128; i < (r + 1) * 128; ++i) {
        store(got, i, estimate.value[i] * (1 + error));
      }
    }
    alarms_if_independent += !judge(estimate, got).passed();
    for (std::int64_t r = 0; r < kShape.rows; ++r) {
      double sum = 0;
      for (std::int64_t i = r * 128; i < (r + 1) * 128; ++i) sum += estimate.sigma[i];
      estimate.row_mean_sigma[r] = sum / 128;
    }
    EXPECT_EQ(failed_checks(judge(estimate, got)), "") << seed;
  }
  EXPECT_GT(alarms_if_independent, 40);
}

}  // namespace judge_bias_test
}  // namespace plumb::tests
