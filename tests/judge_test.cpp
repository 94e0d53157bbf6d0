// SPDX-License-Identifier: Apache-2.0
//
// The verdict on floating-point tensors: each check can fail, and can be the only one that does;
// and what is honest passes.
#include "cases/judge.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

#include "reference/rounding.h"
#include "tests/random.h"

namespace plumb::cases {
namespace {

using reference::Estimate;
using reference::Format;
using tests::Random;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kUnit = reference::kUnitBf16;

struct Shape {
  std::int64_t rows, columns;
};
constexpr Shape kWide{128, 512};
constexpr Shape kNarrow{4096, 16};  // a bias is seen over many rows only

// Normal values; before the output rounding each has an error of its own, of `sigma` bf16 units.
Estimate make_estimate(Shape shape, double sigma, std::uint64_t seed) {
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

void store(HostTensor& tensor, std::int64_t i, double value) {
  const auto bits =
      std::bit_cast<std::uint32_t>(static_cast<float>(reference::nearest(Format::bf16, value)));
  tensor.data<std::uint16_t>()[i] = static_cast<std::uint16_t>(bits >> 16);
}

double unchanged(std::int64_t, double value) { return value; }

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

TensorReport judge(const Estimate& estimate, const HostTensor& got) {
  return judge_floats(got, estimate, {}, groups_of(estimate.rows, 64, "block"));
}

// Which checks failed, by the word that each failure line carries.
std::string failed_checks(const TensorReport& report) {
  std::string checks;
  for (const std::string& line : report.failures) {
    for (const char* word : {"non-finite", "beyond", "norm", "direction", "mean error"}) {
      if (line.find(word) == std::string::npos) continue;
      checks += std::string(checks.empty() ? "" : ", ") + word;
      break;
    }
  }
  return checks;
}

TEST(Judge, PassesWhatTheModelAllows) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const Shape shape : {kWide, kNarrow}) {
      const Estimate estimate = make_estimate(shape, 0.5, seed);
      const TensorReport report = judge(estimate, make_result(estimate, seed + 100, unchanged));
      EXPECT_EQ(failed_checks(report), "") << report.failures[0];
      EXPECT_EQ(report.elements_compared, shape.rows * shape.columns);
      EXPECT_GT(report.margin, 0.5);
      EXPECT_GT(report.observability, 0.99);
      EXPECT_EQ(report.zero_share, 0);
    }
  }
}

TEST(Judge, NonFiniteValuesHaveToStandAtTheSamePlaces) {
  const Estimate finite = make_estimate(kWide, 0.5, 1);
  const HostTensor honest = make_result(finite, 2, unchanged);
  for (const double expected : {1.0, kNan, kInfinity, -kInfinity}) {
    for (const double stored : {1.0, kNan, kInfinity, -kInfinity}) {
      Estimate estimate = finite;
      HostTensor got = honest;
      estimate.value[7 * 512 + 3] = expected;
      store(got, 7 * 512 + 3, stored);
      const TensorReport report = judge(estimate, got);
      const bool same = expected == stored || (std::isnan(expected) && std::isnan(stored));
      EXPECT_EQ(report.passed(), same) << "expected " << expected << ", stored " << stored;
      if (same) continue;
      EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{7});
      EXPECT_EQ(failed_checks(report).substr(0, 10), "non-finite");
      EXPECT_EQ(report.worst->coordinates, "[7, 3]");
    }
  }
}

TEST(Judge, AcceptsInfinityForAValueBeyondTheFormatOnly) {
  Estimate estimate = make_estimate({1, 2}, 0.5, 1);
  HostTensor got = make_result(estimate, 2, unchanged);
  estimate.value[1] = -3.4e38;  // the largest bf16 is 3.39e38
  for (const double stored : {-kInfinity, kInfinity}) {
    store(got, 1, stored);
    EXPECT_EQ(judge(estimate, got).passed(), stored < 0);
  }
  estimate.value[1] = -3.3e38;
  store(got, 1, -kInfinity);
  EXPECT_FALSE(judge(estimate, got).passed());
}

TEST(Judge, OneElementBeyondItsBoundFails) {
  const Estimate estimate = make_estimate(kWide, 0.5, 1);
  HostTensor got = make_result(estimate, 2, unchanged);
  store(got, 4 * 512 + 17, estimate.value[4 * 512 + 17] * (1 + 6 * kUnit));
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report), "beyond");
  EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{4});
  EXPECT_EQ(
      report.failures[0].find("out: 1 elements in rows 4 of 128 beyond their bound; worst [4, "
                              "17]: expected "),
      0U)
      << report.failures[0];
}

TEST(Judge, AFactorOfOneRowFailsTheNormOnly) {
  const Estimate estimate = make_estimate(kWide, 0.5, 1);
  const HostTensor got = make_result(estimate, 2, [](std::int64_t i, double value) {
    return i / 512 == 9 ? value * 1.003 : value;
  });
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report), "norm");
  EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{9});
  EXPECT_EQ(report.pattern, "each wrong row is 1.003 of what is expected");
}

TEST(Judge, SwappedNeighboursFailTheDirectionOnly) {
  Estimate estimate = make_estimate(kWide, 0.75, 1);
  for (int c = 0; c < 512; ++c) {
    estimate.value[9 * 512 + c] = c % 2 == 0 ? 1 : 1 + 4 * kUnit;
    estimate.sigma[9 * 512 + c] = 0.75 * kUnit;
  }
  HostTensor got = make_result(estimate, 2, unchanged);
  EXPECT_TRUE(judge(estimate, got).passed());
  std::uint16_t* row = got.row<std::uint16_t>(9);
  for (int c = 0; c < 512; c += 2) std::swap(row[c], row[c + 1]);
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report).find("norm"), std::string::npos);
  EXPECT_NE(failed_checks(report).find("direction"), std::string::npos);
  EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{9});
}

TEST(Judge, MoreNoiseThanDeclaredFailsTheDirectionOnly) {
  const Estimate estimate = make_estimate(kWide, 0.5, 1);
  Random random(3);
  const HostTensor got = make_result(estimate, 2, [&](std::int64_t i, double value) {
    const double noise = (random.uniform() < 0.5 ? -1.5 : 1.5) * kUnit;
    return i / 512 == 9 ? value * (1 + noise) : value;
  });
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report), "direction");
  EXPECT_EQ(report.wrong_rows, std::vector<std::int64_t>{9});
}

TEST(Judge, ARowOfTheOppositeSignFailsTheDirection) {
  const Estimate estimate = make_estimate({1, 1}, 0.5, 1);
  const TensorReport report =
      judge(estimate, make_result(estimate, 2, [](std::int64_t, double value) { return -value; }));
  EXPECT_EQ(failed_checks(report), "beyond, direction");
}

TEST(Judge, ABiasOfThreeTenthsOfAPercentFailsTheMeanOnly) {
  const Estimate estimate = make_estimate(kNarrow, 0.5, 1);
  for (const double factor : {0.997, 1.003}) {
    const TensorReport report =
        judge(estimate,
              make_result(estimate, 2, [&](std::int64_t, double value) { return value * factor; }));
    EXPECT_EQ(failed_checks(report), "mean error");
    const std::string direction = factor < 1 ? "0.3 % towards zero" : "0.3 % away from zero";
    EXPECT_NE(report.failures[0].find(direction), std::string::npos) << report.failures[0];
  }
}

TEST(Judge, ATruncatedOutputFailsTheMeanOnly) {
  const Estimate estimate = make_estimate(kNarrow, 0.5, 1);
  const HostTensor got = make_result(estimate, 2, [](std::int64_t, double value) {
    const double rounded = reference::nearest(Format::bf16, value);
    const double step = reference::spacing(Format::bf16, value);
    return std::abs(rounded) > std::abs(value) ? rounded - std::copysign(step, value) : rounded;
  });
  EXPECT_EQ(failed_checks(judge(estimate, got)), "mean error");
}

TEST(Judge, ABiasOfOneGroupIsNamed) {
  const Estimate estimate = make_estimate(kNarrow, 0.5, 1);
  const HostTensor got = make_result(estimate, 2, [](std::int64_t i, double value) {
    return i / (16 * 64) == 5 ? value * 0.995 : value;
  });
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report), "mean error");
  EXPECT_EQ(report.failures[0].find("out: mean error of block 5 is "), 0U) << report.failures[0];
}

// Rows of padding have one input, and so one error.
TEST(Judge, RowsThatRepeatOneAreNoEvidenceOfABias) {
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

TEST(Judge, ADeclaredBiasHasItsAllowance) {
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

// The same value everywhere, 0.3 steps above a representable one: an honest rounding is off by 0.3
// steps every time, which is no bias.
TEST(Judge, ExpectsWhatTheOutputRoundingDoesToAValue) {
  Estimate estimate = make_estimate(kNarrow, 0, 1);
  for (double& value : estimate.value) value = 1 + 0.3 * 0x1p-7;
  EXPECT_EQ(failed_checks(judge(estimate, make_result(estimate, 2, unchanged))), "");
  const HostTensor up = make_result(estimate, 2, [](std::int64_t, double) { return 1 + 0x1p-7; });
  EXPECT_FALSE(judge(estimate, up).passed());
}

TEST(Judge, LeavesAnExactTieOpen) {
  Estimate estimate = make_estimate({4, 3}, 0, 1);
  for (double& value : estimate.value) value = 1 + 0x1p-8;
  for (const double neighbour : {1.0, 1 + 0x1p-7}) {
    const HostTensor got =
        make_result(estimate, 2, [&](std::int64_t, double) { return neighbour; });
    EXPECT_EQ(failed_checks(judge(estimate, got)), "") << neighbour;
  }
}

// Few elements, some next to a tie: their sums are far from normal.
TEST(Judge, RaisesNoFalseAlarmForTensorsOfFewElements) {
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    Random random(seed);
    const Shape shape{1 + random.below(4), 1 + random.below(4)};
    const Estimate estimate = make_estimate(shape, std::exp2(-7 + 8 * random.uniform()), seed);
    const TensorReport report = judge(estimate, make_result(estimate, seed + 1, unchanged));
    EXPECT_TRUE(report.passed()) << seed << ": " << report.failures[0];
  }
}

// All elements of a row err together: the mean of a row is as uncertain as one element.
TEST(Judge, DoesNotTakeItsOwnRoundingForAnError) {
  // Numbers that need no rounding: what is across the value is the judge's.
  for (int i = 1; i < 20000; ++i) {
    Estimate estimate;
    estimate.resize(1, 2);
    estimate.output = Format::f32;
    HostTensor got({.name = "scales", .dtype = Dtype::f32, .shape = {1, 2}});
    for (const int column : {0, 1}) {
      const int odd = 2 * (i * 7919 % 100003 + column * (i % 977)) + 1;
      estimate.value[column] = odd * 0x1p-20;
      got.data<float>()[column] = static_cast<float>(estimate.value[column]);
    }
    const TensorReport report = judge_floats(got, estimate, {}, {});
    EXPECT_TRUE(report.passed()) << i << ": " << report.failures.front();
  }
}

TEST(Judge, CountsCorrelatedErrorsAsOne) {
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

// Roundings that repeat each other obey no statistics: only the worst case counts.
TEST(Judge, AllowsStructuredRoundingsTheirWorstCase) {
  Estimate estimate = make_estimate(kNarrow, 0.1, 1);
  for (std::size_t i = 0; i < estimate.worst.size(); ++i) {
    estimate.worst[i] = 4 * kUnit * std::abs(estimate.value[i]);
  }
  const HostTensor got =
      make_result(estimate, 2, [](std::int64_t, double value) { return value * (1 + 3 * kUnit); });
  EXPECT_FALSE(judge(estimate, got).passed());
  estimate.structured = true;
  EXPECT_EQ(failed_checks(judge(estimate, got)), "");
  const HostTensor worse =
      make_result(estimate, 2, [](std::int64_t, double value) { return value * (1 + 6 * kUnit); });
  EXPECT_FALSE(judge(estimate, worse).passed());
}

TEST(Judge, DoesNotLookAtRowsThatAreNotPromised) {
  const Estimate estimate = make_estimate({3, 512}, 0.5, 1);
  HostTensor got = make_result(estimate, 2, unchanged);
  store(got, 2 * 512, kNan);
  const TensorReport report = judge_floats(got, estimate, {true, true, false}, {});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.rows_compared, 2);
  EXPECT_FALSE(judge_floats(got, estimate, {}, {}).passed());
}

TEST(Judge, DoesNotLookAtColumnsThatAreNotPromised) {
  Estimate estimate = make_estimate({8, 64}, 0.5, 6);
  ColumnRanges columns;
  for (std::int64_t r = 0; r < 8; ++r) columns.push_back({r, 5 * r});
  HostTensor got = make_result(estimate, 7, unchanged);
  for (std::int64_t r = 0; r < 8; ++r) {
    for (std::int64_t c = 0; c < 64; ++c) {
      if (c >= columns[r].begin && c < columns[r].end) continue;
      estimate.value[r * 64 + c] = estimate.sigma[r * 64 + c] = estimate.worst[r * 64 + c] = 0;
      store(got, r * 64 + c, kNan);
    }
  }
  const auto judged = [&] { return judge_floats(got, estimate, {}, {}, {}, columns); };
  EXPECT_EQ(failed_checks(judged()), "");
  EXPECT_EQ(judged().elements_compared, 4 * 28);
  EXPECT_GT(judged().observability, 0.99);
  EXPECT_EQ(judged().zero_share, 0);
  store(got, 3 * 64 + 14, kNan);
  EXPECT_EQ(judged().wrong_rows, (std::vector<std::int64_t>{3}));
}

TEST(Judge, AnEstimateThatIsNotANumberFails) {
  const Estimate right = make_estimate(kWide, 0.5, 1);
  const HostTensor got = make_result(right, 2, unchanged);
  Estimate estimate = right;
  estimate.sigma[5] = kNan;
  EXPECT_FALSE(judge(estimate, got).passed());
  estimate = right;
  estimate.row_mean_sigma[5] = kNan;
  EXPECT_FALSE(judge(estimate, got).passed());
  estimate = right;
  estimate.row_systematic[5] = kNan;
  EXPECT_FALSE(judge(estimate, got).passed());
}

TEST(Judge, ReportsWhatAZeroWouldNotShow) {
  Estimate estimate = make_estimate({2, 4}, 0.5, 1);
  estimate.value = {0, 0, 0, 0, 1, 1, 1, 1};
  estimate.sigma = {0, 0, 0, 0, 0.5, 0.5, 0.1, 0.1};
  const TensorReport report =
      judge(estimate,
            make_result(estimate, 2, [&](std::int64_t i, double) { return estimate.value[i]; }));
  EXPECT_EQ(report.zero_share, 0.5);
  EXPECT_EQ(report.observability, 0.25);
}

TEST(Judge, RefusesShapesThatDiffer) {
  const Estimate estimate = make_estimate({2, 4}, 0.5, 1);
  const HostTensor got({.name = "out", .dtype = Dtype::bf16, .shape = {4, 2}});
  EXPECT_THROW(judge(estimate, got), std::invalid_argument);
}

}  // namespace
}  // namespace plumb::cases
