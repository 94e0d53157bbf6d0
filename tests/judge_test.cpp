// SPDX-License-Identifier: Apache-2.0
//
// Each check of the judge can fail, and can be the only one that does.
#include "cases/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "reference/rounding.h"
#include "tests/random.h"

namespace plumb::cases {
namespace {

using reference::Estimate;
using reference::Format;
using tests::Random;

constexpr std::int64_t kRows = 128;
constexpr std::int64_t kColumns = 512;

// Normal values; errors of `sigma` bf16 units of each value before the output rounding,
// independent.
Estimate make_estimate(double sigma, std::uint64_t seed) {
  Estimate estimate;
  estimate.resize(kRows, kColumns);
  Random random(seed);
  for (std::int64_t r = 0; r < kRows; ++r) {
    double squares = 0;
    for (std::int64_t i = r * kColumns; i < (r + 1) * kColumns; ++i) {
      estimate.value[i] = random.normal();
      estimate.sigma[i] = sigma * reference::kUnitBf16 * std::abs(estimate.value[i]);
      estimate.worst[i] = std::numeric_limits<double>::infinity();
      squares += estimate.sigma[i] * estimate.sigma[i];
    }
    estimate.row_mean_sigma[r] = std::sqrt(squares) / kColumns;
  }
  return estimate;
}

void store(HostTensor& tensor, std::int64_t i, double value) {
  const float rounded = static_cast<float>(reference::nearest(Format::bf16, value));
  tensor.data<std::uint16_t>()[i] =
      static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >> 16);
}

// What an honest device stores, after `change` was applied to each value before rounding.
HostTensor make_result(const Estimate& estimate, std::uint64_t seed,
                       const std::function<double(std::int64_t i, double value)>& change) {
  HostTensor got({.name = "out", .dtype = Dtype::bf16, .shape = {estimate.rows, estimate.columns}});
  Random random(seed);
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    store(got, i, change(i, estimate.value[i] + estimate.sigma[i] * random.normal()));
  }
  return got;
}

double unchanged(std::int64_t, double value) { return value; }

// Which checks failed, by the word that each failure line carries.
std::string failed_checks(const TensorReport& report) {
  std::string checks;
  for (const std::string& line : report.failures) {
    for (const char* word :
         {"non-finite", "beyond their bound", "norm of", "direction of", "mean error"}) {
      if (line.find(word) != std::string::npos)
        checks += std::string(checks.empty() ? "" : ", ") + word;
    }
  }
  return checks;
}

TensorReport judge(const Estimate& estimate, const HostTensor& got) {
  return judge_floats(got, estimate, {}, groups_of(kRows, 64, "block"));
}

TEST(Judge, PassesWhatTheModelAllows) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Estimate estimate = make_estimate(0.5, seed);
    const TensorReport report = judge(estimate, make_result(estimate, seed + 100, unchanged));
    EXPECT_EQ(failed_checks(report), "") << report.failures[0];
    EXPECT_EQ(report.elements_compared, kRows * kColumns);
    EXPECT_GT(report.margin, 0.5);
    EXPECT_GT(report.observability, 0.99);
  }
}

TEST(Judge, NonFiniteValuesHaveToStandAtTheSamePlaces) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const double kinds[] = {1, kNan, kInfinity, -kInfinity};
  for (const double expected : kinds) {
    for (const double stored : kinds) {
      Estimate estimate = make_estimate(0.5, 1);
      HostTensor got = make_result(estimate, 2, unchanged);
      estimate.value[7 * kColumns + 3] = expected;
      store(got, 7 * kColumns + 3, stored);
      const TensorReport report = judge(estimate, got);
      const bool same = expected == stored || (std::isnan(expected) && std::isnan(stored));
      EXPECT_EQ(report.passed(), same) << "expected " << expected << ", stored " << stored;
      if (!same) {
        EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{7});
        EXPECT_EQ(failed_checks(report).substr(0, 10), "non-finite");
      }
    }
  }
}

TEST(Judge, OneElementBeyondItsBoundFails) {
  const Estimate estimate = make_estimate(0.5, 1);
  HostTensor got = make_result(estimate, 2, unchanged);
  store(got, 4 * kColumns + 17, estimate.value[4 * kColumns + 17] * (1 + 6 * reference::kUnitBf16));
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report), "beyond their bound");
  EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{4});
  EXPECT_EQ(report.worst->coordinates, "[4, 17]");
}

TEST(Judge, AFactorOfOneRowFailsTheNormOnly) {
  const Estimate estimate = make_estimate(0.5, 1);
  const HostTensor got = make_result(estimate, 2, [](std::int64_t i, double value) {
    return i / kColumns == 9 ? value * 1.003 : value;
  });
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report), "norm of");
  EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{9});
}

TEST(Judge, MoreNoiseThanDeclaredFailsTheDirectionOnly) {
  const Estimate estimate = make_estimate(0.5, 1);
  Random random(3);
  const HostTensor got = make_result(estimate, 2, [&](std::int64_t i, double value) {
    const double noise = (random.uniform() < 0.5 ? -1.2 : 1.2) * reference::kUnitBf16;
    return i / kColumns == 9 ? value * (1 + noise) : value;
  });
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report), "direction of");
  EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{9});
}

TEST(Judge, ABiasOfThreeTenthsOfAPercentFailsTheMeanOnly) {
  const Estimate estimate = make_estimate(0.5, 1);
  for (const double factor : {0.9997, 1.0003}) {
    const HostTensor got =
        make_result(estimate, 2, [&](std::int64_t, double value) { return value * factor; });
    const TensorReport report = judge(estimate, got);
    EXPECT_EQ(failed_checks(report), "mean error");
    const std::string direction = factor < 1 ? "towards zero" : "away from zero";
    EXPECT_NE(report.failures[0].find(direction), std::string::npos) << report.failures[0];
  }
}

TEST(Judge, NamesRangesOfRows) {
  EXPECT_EQ(row_ranges({3, 4, 5, 6, 9}), "3-6, 9");
  EXPECT_EQ(row_ranges({0, 2, 4, 6, 8, 10, 12}), "0, 2, 4, 6, 8, 10, …");
  EXPECT_EQ(row_ranges({}), "");
}

TEST(Judge, FindsWrongIntegerRows) {
  HostTensor got({.name = "indices", .dtype = Dtype::i32, .shape = {7, 4}});
  std::vector<std::int64_t> expected(28);
  for (int i = 0; i < 28; ++i) got.data<std::int32_t>()[i] = i, expected[i] = i;
  EXPECT_TRUE(judge_exact(got, expected, {}).passed());
  for (int i = 12; i < 28; ++i) got.data<std::int32_t>()[i] += 4096;
  const TensorReport report = judge_exact(got, expected, {});
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_EQ(
      report.failures[0],
      "indices: rows 3-6 of 7 wrong; row 3 differs in 4 of 4 places (first [3, 0]: expected 12, "
      "got 4108)");
}

}  // namespace
}  // namespace plumb::cases
