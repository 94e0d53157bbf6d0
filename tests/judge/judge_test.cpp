// SPDX-License-Identifier: Apache-2.0
//
// The verdict on floating-point tensors: each check can fail, and can be the only one that fails;
// right results pass.
#include "cases/judge/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <regex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/judge_data.h"

namespace plumb::tests {
namespace judge_test {

using namespace cases;

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
      report.failures[0].find("out: 1 element beyond its bound in 1 of 128 rows (row 4); worst [4, "
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
  EXPECT_EQ(report.pattern, "each wrong row is 1.003 × the expected row");
  std::smatch norms;
  ASSERT_TRUE(std::regex_search(report.failures.at(0), norms,
                                std::regex("row 9: ([^,]+), expected ([^ ]+) ± ")))
      << report.failures.at(0);
  EXPECT_NE(norms[1], norms[2]);
}

TEST(Judge, SwappedNeighboursFailTheDirectionOnly) {
  Estimate estimate = make_estimate(kWide, 0.75, 1);
  for (int c = 0; c < 512; ++c) {
    estimate.value[9 * 512 + c] = c % 2 == 0 ? 1 : 1 + 4 * kUnit;
    estimate.sigma[9 * 512 + c] = 0.75 * kUnit;
    estimate.worst[9 * 512 + c] = 10 * kUnit;
  }
  HostTensor got = make_result(estimate, 2, unchanged);
  EXPECT_TRUE(judge(estimate, got).passed());
  for (int c = 0; c < 512; ++c) store(got, 9 * 512 + c, estimate.value[9 * 512 + c]);
  std::uint16_t* row = got.row<std::uint16_t>(9);
  for (int c = 0; c < 512; c += 2) std::swap(row[c], row[c + 1]);
  const TensorReport report = judge(estimate, got);
  EXPECT_EQ(failed_checks(report), "direction");
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

// Each element is within its bound, which is larger than twice its value.
TEST(Judge, ARowOfTheOppositeSignFailsTheDirection) {
  Estimate estimate = make_estimate(kWide, 0.5, 1);
  for (int c = 0; c < 512; ++c) {
    estimate.value[9 * 512 + c] = 1;
    estimate.sigma[9 * 512 + c] = 0.4;
    estimate.worst[9 * 512 + c] = 10;
  }
  HostTensor got = make_result(estimate, 2, unchanged);
  for (int c = 0; c < 512; ++c) store(got, 9 * 512 + c, -1);
  EXPECT_EQ(failed_checks(judge(estimate, got)), "direction");
}

// An element beyond its bound has said that its row is wrong. Other rows keep their lines.
TEST(Judge, ARowWithWrongElementsHasNoLinesOfItsNormAndDirection) {
  const Estimate estimate = make_estimate(kWide, 0.5, 1);
  const auto doubled = [&](std::int64_t i, double value) {
    return i / 512 == 9 ? -2 * value : value;
  };
  const HostTensor got = make_result(estimate, 2, doubled);
  EXPECT_EQ(failed_checks(judge(estimate, got)), "beyond");
  Random random(3);
  const HostTensor two = make_result(estimate, 2, [&](std::int64_t i, double value) {
    const double noise = (random.uniform() < 0.5 ? -1.5 : 1.5) * kUnit;
    return i / 512 == 8 ? value * (1 + noise) : doubled(i, value);
  });
  const TensorReport report = judge(estimate, two);
  EXPECT_EQ(failed_checks(report), "beyond, direction");
  EXPECT_EQ(report.wrong_rows, (std::vector<std::int64_t>{8, 9}));
  EXPECT_NE(report.failures.back().find("(row 8)"), std::string::npos) << report.failures.back();
}

// All values are equal, and 0.3 steps above a representable number. A right rounding is off by 0.3
// steps every time, which is not a bias.
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

// With few elements, some next to a tie, sums of errors are far from normal.
TEST(Judge, RaisesNoFalseAlarmForTensorsOfFewElements) {
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    Random random(seed);
    const Shape shape{1 + random.below(4), 1 + random.below(4)};
    const Estimate estimate = make_estimate(shape, std::exp2(-7 + 8 * random.uniform()), seed);
    const TensorReport report = judge(estimate, make_result(estimate, seed + 1, unchanged));
    EXPECT_TRUE(report.passed()) << seed << ": " << report.failures[0];
  }
}

TEST(Judge, DoesNotTakeItsOwnRoundingForAnError) {
  // Every number is exactly representable: any component orthogonal to the expected row comes from
  // the judge's own rounding.
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

// Equal roundings that repeat have no statistics, so only the worst case limits them.
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
  const auto judged = [&] { return judge_floats(got, estimate, {}, {}, columns); };
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

}  // namespace judge_test
}  // namespace plumb::tests
