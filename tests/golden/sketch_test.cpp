// SPDX-License-Identifier: Apache-2.0
//
// Compares sketches with the values that they were made from.
#include "golden/sketch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases/tensors/fill.h"

namespace plumb::golden {
namespace sketch_test {

constexpr std::int64_t kRows = 40, kColumns = 300;

// A tensor whose rows have very different norms.
cases::HostTensor some_tensor(std::uint64_t seed) {
  cases::HostTensor tensor({.name = "out", .dtype = cases::Dtype::f32, .shape = {kRows, kColumns}});
  cases::fill_real(tensor, 0, kRows, seed, {});
  return tensor;
}

TEST(Sketch, HasTheStatisticsOfTheFiniteElements) {
  cases::HostTensor tensor({.name = "out", .dtype = cases::Dtype::f32, .shape = {2, 3}});
  const float values[] = {1, -4, std::numeric_limits<float>::infinity(), 2, NAN, 2};
  std::copy(std::begin(values), std::end(values), tensor.data<float>());
  const TensorStatistics all = sketch_of(tensor).statistics;
  EXPECT_EQ(all.non_finite, 2);
  EXPECT_EQ(all.mean, 0.25);
  EXPECT_EQ(all.norm, 5);
  EXPECT_EQ(all.least, -4);
  EXPECT_EQ(all.least_at, 1);
  EXPECT_EQ(all.greatest, 2);
  EXPECT_EQ(all.greatest_at, 3);
}

TEST(Sketch, OfNoFiniteElementHasNoExtremes) {
  cases::HostTensor tensor({.name = "out", .dtype = cases::Dtype::f32, .shape = {1, 2}});
  tensor.data<float>()[0] = tensor.data<float>()[1] = NAN;
  const TensorStatistics all = sketch_of(tensor).statistics;
  EXPECT_EQ(all.non_finite, 2);
  EXPECT_EQ(all.least_at, -1);
  EXPECT_EQ(all.greatest_at, -1);
}

TEST(Sketch, IsTheSameEachTime) {
  const TensorSketch a = sketch_of(some_tensor(1)), b = sketch_of(some_tensor(1));
  EXPECT_EQ(a.projections, b.projections);
  EXPECT_EQ(difference_of(a, b).norm, 0);
  EXPECT_GT(difference_of(a, sketch_of(some_tensor(2))).norm, 0);
}

TEST(Sketch, OfOneMovedElementTheDifferenceIsExact) {
  const cases::HostTensor before = some_tensor(1);
  for (const std::int64_t column : {0, 74, 75, 150, 299}) {
    cases::HostTensor after = before;
    float& moved = after.row<float>(17)[column];
    moved *= 1.0625F;
    const double size = std::abs(after.value(17, column) - before.value(17, column));
    const SketchDifference got = difference_of(sketch_of(before), sketch_of(after));
    // The tolerance covers the rounding of the sums.
    EXPECT_NEAR(got.norm, size, 1e-10 * sketch_of(before).statistics.norm) << column;
    EXPECT_EQ(got.first_part, static_cast<std::size_t>(column / 75));
    EXPECT_EQ(got.last_part, got.first_part);
  }
}

// Compares estimates with the norm, for differences in the first `columns` columns.
void expect_estimates(std::int64_t columns, double most_deviation) {
  double sum = 0, squares = 0;
  constexpr int kTrials = 200;
  for (int trial = 0; trial < kTrials; ++trial) {
    const cases::HostTensor before = some_tensor(1);
    cases::HostTensor after = before;
    double norm = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto seed = static_cast<std::uint64_t>(trial + 1000);
        const auto at = static_cast<std::uint64_t>(row * kColumns + column);
        after.row<float>(row)[column] += static_cast<float>(cases::normal(seed, at));
        const double apart = after.value(row, column) - before.value(row, column);
        norm += apart * apart;
      }
    }
    const double ratio = difference_of(sketch_of(before), sketch_of(after)).norm / std::sqrt(norm);
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / kTrials, deviation = std::sqrt(squares / kTrials - mean * mean);
  EXPECT_NEAR(mean, 1, 0.06);
  EXPECT_LT(deviation, most_deviation);
  EXPECT_GT(deviation, most_deviation / 3) << "no estimate at all";
}

TEST(Sketch, EstimatesTheNormOfADifference) {
  expect_estimates(kColumns, 0.16);     // of 32 sums: 1 / sqrt(2 * 32)
  expect_estimates(kColumns / 4, 0.3);  // of 8 sums: 1 / sqrt(2 * 8)
}

TEST(Sketch, KnowsWhichNumbersAreNone) {
  const TensorStatistics all{
      .non_finite = 3, .mean = 1, .norm = 2, .least = -1, .greatest = 5, .least_at = 7};
  EXPECT_EQ(numbers_of(statistics_of(numbers_of(all)).value()), numbers_of(all));
  for (const std::size_t place : {0, 4, 6}) {
    for (const double wrong : {0.5, -2.0, 1e17, HUGE_VAL, std::nan("")}) {
      StatisticNumbers numbers = numbers_of(all);
      numbers[place] = wrong;
      EXPECT_FALSE(statistics_of(numbers)) << place << " " << wrong;
    }
  }
}

}  // namespace sketch_test
}  // namespace plumb::golden
