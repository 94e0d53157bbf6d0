// SPDX-License-Identifier: Apache-2.0
//
// The limits for rows and the standard errors of the bias test, against right results with known
// correlations: neither too tight (false alarms) nor far too wide (missed errors).
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "cases/judge/bias.h"
#include "reference/rounding.h"
#include "tests/support/random.h"

namespace plumb::cases {
namespace row_model_test {

using reference::Estimate;
using tests::Random;

constexpr std::int64_t kRows = 32;
constexpr std::int64_t kColumns = 64;

// Errors of `sigma` bf16 units of the value. A part sqrt(rho) of each error is shared by its row.
Estimate make_estimate(double sigma, double rho, std::uint64_t seed) {
  Estimate estimate;
  estimate.resize(kRows, kColumns);
  Random random(seed);
  for (std::int64_t r = 0; r < kRows; ++r) {
    double sum = 0, squares = 0;
    for (std::int64_t i = r * kColumns; i < (r + 1) * kColumns; ++i) {
      estimate.value[i] = random.normal();
      estimate.sigma[i] = sigma * reference::kUnitBf16 * std::abs(estimate.value[i]);
      estimate.worst[i] = 100 * estimate.sigma[i];
      sum += estimate.sigma[i];
      squares += estimate.sigma[i] * estimate.sigma[i];
    }
    estimate.row_mean_sigma[r] = std::sqrt((1 - rho) * squares + rho * sum * sum) / kColumns;
  }
  return estimate;
}

// A row as a right kernel stores it.
std::vector<double> store_row(const Estimate& estimate, std::int64_t r, double rho,
                              Random& random) {
  const double shared = std::sqrt(rho) * random.normal();
  std::vector<double> stored;
  for (std::int64_t i = r * kColumns; i < (r + 1) * kColumns; ++i) {
    const double error = shared + std::sqrt(1 - rho) * random.normal();
    stored.push_back(reference::nearest(
        estimate.output,
        estimate.value[i] + std::copysign(estimate.sigma[i], estimate.value[i]) * error));
  }
  return stored;
}

double mean_error(const std::vector<double>& stored, const double* value) {
  double sum = 0;
  for (std::int64_t c = 0; c < kColumns; ++c) {
    sum += std::copysign(1.0, value[c]) * (stored[c] - value[c]);
  }
  return sum / kColumns;
}

class BiasSpread : public testing::TestWithParam<std::tuple<double, double>> {};

TEST_P(BiasSpread, IsAboutOneStandardError) {
  const auto [sigma, rho] = GetParam();
  constexpr int kSeeds = 200;
  double square = 0, largest = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Estimate estimate = make_estimate(sigma, rho, seed);
    Random random(seed + 1000);
    BiasTest test(estimate.output, kColumns);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::vector<double> stored = store_row(estimate, r, rho, random);
      test.add(model_row(estimate, r), mean_error(stored, &estimate.value[r * kColumns]));
    }
    square += std::pow(test.result().sigmas, 2);
    largest = std::max(largest, test.result().sigmas);
  }
  const double spread = std::sqrt(square / kSeeds);
  // If errors are far below a step of the format, results take few values, and Bernstein's
  // inequality gives wider limits than a normal distribution.
  const bool granular = sigma < 0.3 || (sigma < 1 && rho > 0.5);
  EXPECT_LT(spread, 1.15);
  EXPECT_GT(spread, granular ? 0.1 : 0.5);
  EXPECT_LT(largest, kBiasSigmas);
}

INSTANTIATE_TEST_SUITE_P(, BiasSpread,
                         testing::Combine(testing::Values(0.01, 0.1, 0.3, 1.0, 4.0),
                                          testing::Values(0.0, 0.1, 0.5, 1.0)));

TEST(BiasOfRows, IgnoresARowWhoseErrorHasNoLimit) {
  const Estimate estimate = make_estimate(1, 0, 0);
  RowModel ordinary = model_row(estimate, 0), unlimited = model_row(estimate, 1);
  unlimited.spread.variance = std::numeric_limits<double>::infinity();
  const double biased = ordinary.mean + 100 * std::sqrt(ordinary.spread.variance);
  BiasTest one(estimate.output, kColumns), both(estimate.output, kColumns);
  one.add(ordinary, biased);
  both.add(ordinary, biased);
  both.add(unlimited, 1e30);
  EXPECT_FALSE(both.result().passed());
  EXPECT_EQ(both.result().sigmas, one.result().sigmas);
}

class RowLimits : public testing::TestWithParam<std::tuple<double, double>> {};

TEST_P(RowLimits, AreNeverPassedByHonestRowsButApproached) {
  const auto [sigma, rho] = GetParam();
  double norm = 0, across = 0;  // largest share of each limit
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Estimate estimate = make_estimate(sigma, rho, seed);
    Random random(seed + 1000);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const Eigen::Map<const Eigen::VectorXd> value(&estimate.value[r * kColumns], kColumns);
      const std::vector<double> row = store_row(estimate, r, rho, random);
      const Eigen::Map<const Eigen::VectorXd> stored(row.data(), kColumns);
      const RowModel model = model_row(estimate, r);
      const Eigen::VectorXd error = stored - value * (stored.dot(value) / value.squaredNorm());
      norm = std::max(norm, std::abs(stored.norm() - model.norm) / model.norm_limit);
      across = std::max(across, error.norm() / model.direction_limit);
    }
  }
  EXPECT_LE(norm, 1);
  EXPECT_LE(across, 1);
  EXPECT_GE(norm, 0.15);
  EXPECT_GE(across, rho > 0 ? 0.15 : 0.4);
}

INSTANTIATE_TEST_SUITE_P(, RowLimits,
                         testing::Combine(testing::Values(0.01, 0.1, 0.3, 1.0, 4.0),
                                          testing::Values(0.0, 0.1, 0.5)));

TEST(RowModel, HasNoLimitWhereNothingIsKnownOfAnError) {
  Estimate estimate = make_estimate(1, 0, 7);
  estimate.sigma[3] = estimate.worst[3] = reference::kInfinity;
  const RowModel unlimited = model_row(estimate, 0), other = model_row(estimate, 1);
  EXPECT_FALSE(unlimited.mean_predicted);
  EXPECT_EQ(unlimited.norm_limit, reference::kInfinity);
  EXPECT_EQ(unlimited.direction_limit, reference::kInfinity);
  EXPECT_GT(unlimited.norm, 0);
  EXPECT_TRUE(other.mean_predicted);
  EXPECT_LT(other.norm_limit, other.norm);
  EXPECT_LT(other.direction_limit, other.norm);
}

}  // namespace row_model_test
}  // namespace plumb::cases
