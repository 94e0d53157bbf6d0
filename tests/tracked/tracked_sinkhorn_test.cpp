// SPDX-License-Identifier: Apache-2.0
//
// Tests bounds by random roundings with Sinkhorn's iteration: no fp32 result exceeds them, they are
// tight, and they are close to the bounds derived by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "reference/hyper_connection/sinkhorn.h"
#include "reference/rounding.h"
#include "reference/tracked/random_roundings.h"
#include "tests/support/random.h"
#include "tests/tracked/honest_array.h"

namespace plumb::reference {
namespace tracked_sinkhorn_test {

constexpr int kIterations = 10;
constexpr double kEps = 1e-6;

// The iteration of reference/hyper_connection/sinkhorn.h on [4, 4].
template <class A>
A sinkhorn_of(const A& logits) {
  const A e = exp(logits - max(logits, 1));
  A m = e / sum(e, 1) + kEps;
  m = m / (sum(m, 0) + kEps);
  for (int i = 1; i < kIterations; ++i) {
    m = m / (sum(m, 1) + kEps);
    m = m / (sum(m, 0) + kEps);
  }
  return m;
}
const auto kSampled = [](const std::vector<SampledArray>& a) { return sinkhorn_of(a[0]); };

std::vector<double> logits_of(tests::Random& random) {
  std::vector<double> logits;
  for (int i = 0; i < kCombEntries; ++i) logits.push_back(static_cast<float>(random.normal()));
  return logits;
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

TEST(TrackedSinkhorn, BoundsFp32AndNotMuchMore) {
  const Numerics numerics{.function_ulp = 0.5};
  tests::Random random(3);
  std::vector<double> of_largest, of_each, of_tracked;
  double squares = 0;
  int rows = 0;
  for (int seed = 0; seed < 60; ++seed) {
    const auto logits = logits_of(random);
    const Tracked input(logits, {4, 4}, numerics);
    const Estimate right = estimate_of(by_random_roundings(kSampled, {input}, 64), Format::f32);
    const Estimate tracked = estimate_of(sinkhorn_of(input), Format::f32);
    std::vector<double> largest(kCombEntries);
    for (int order = 0; order < 200; ++order) {
      const HonestArray got = sinkhorn_of(
          HonestArray({logits.begin(), logits.end()}, {4, 4}, random, numerics.function_ulp));
      for (std::int64_t i = 0; i < kCombEntries; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double error = std::abs(got.values[at] - right.centre(i));
        ASSERT_LE(error, right.arithmetic(i)) << seed << ' ' << i;
        largest[at] = std::max(largest[at], error);
        if (error > 0) of_each.push_back(right.arithmetic(i) / error);
        if (error > 0) of_tracked.push_back(tracked.arithmetic(i) / error);
      }
      for (std::int64_t row = 0; row < 4; ++row) {
        double mean = 0;
        for (std::size_t i = 0; i < 4; ++i) {
          const std::size_t at = static_cast<std::size_t>(row) * 4 + i;
          mean += (got.values[at] - right.value[at]) / 4;
        }
        const auto at = static_cast<std::size_t>(row);
        ASSERT_LE(std::abs(mean), 8 * right.row_mean_sigma[at] + right.row_systematic[at]);
        squares += square(mean / right.row_mean_sigma[at]);
        ++rows;
      }
    }
    for (std::size_t i = 0; i < largest.size(); ++i) {
      of_largest.push_back(right.arithmetic(static_cast<std::int64_t>(i)) / largest[i]);
    }
  }
  EXPECT_LT(median(of_largest), 4) << "bound over the largest error of 200 orders";
  EXPECT_LT(median(of_each), 16) << "bound over error";
  EXPECT_GT(median(of_tracked), 1.2 * median(of_each)) << "rule by rule";
  EXPECT_LT(std::sqrt(squares / rows), 1.3);
}

TEST(TrackedSinkhorn, IsNearTheReferenceByHand) {
  const Numerics numerics{};
  tests::Random random(4);
  std::vector<double> ratios;
  for (int seed = 0; seed < 20; ++seed) {
    const auto logits = logits_of(random);
    Matrix4 matrix{};
    std::ranges::copy(logits, matrix.begin());
    const SinkhornResult by_hand = sinkhorn(matrix, {}, 0, kIterations, kEps, numerics);
    const Tracked sampled = by_random_roundings(kSampled, {Tracked(logits, {4, 4}, numerics)}, 64);
    for (std::int64_t i = 0; i < kCombEntries; ++i) {
      const auto at = static_cast<std::size_t>(i);
      ASSERT_NEAR(sampled.values()[at], by_hand.value[at], 1e-12);
      ratios.push_back(sampled.sigma(i) /
                       (by_hand.value[at] * std::sqrt(by_hand.covariance[at][at])));
    }
  }
  EXPECT_GT(median(ratios), 0.7);
  EXPECT_LT(median(ratios), 1.5);
}

// An implementation that stores its steps in tf32 must exceed the bounds for fp32.
TEST(TrackedSinkhorn, BoundsAreExceededByOtherRoundings) {
  const Numerics numerics{.function_ulp = 0.5};
  tests::Random random(5);
  int beyond = 0;
  for (int seed = 0; seed < 10; ++seed) {
    const auto logits = logits_of(random);
    const Tracked right = by_random_roundings(kSampled, {Tracked(logits, {4, 4}, numerics)}, 64);
    const HonestArray input({logits.begin(), logits.end()}, {4, 4}, random, numerics.function_ulp);
    const HonestArray stored = sinkhorn_of(rounded(input, Format::tf32));
    for (std::int64_t i = 0; i < kCombEntries; ++i) {
      const auto at = static_cast<std::size_t>(i);
      beyond += std::abs(stored.values[at] - right.values()[at]) > 6 * right.sigma(i);
    }
  }
  EXPECT_GT(beyond, 80);
}

TEST(TrackedSinkhorn, DrawsTheErrorsOfInputs) {
  const Numerics coarse{.function_ulp = 1000};
  const Tracked a = exp(Tracked({0.1, 0.2}, {2}, coarse));
  const Tracked same = a, other = exp(Tracked({0.1, 0.2}, {2}, coarse));
  const auto difference = [](const std::vector<SampledArray>& x) { return x[0] - x[1]; };
  const auto total = [](const std::vector<SampledArray>& x) { return x[0] + x[1]; };
  EXPECT_LT(by_random_roundings(difference, {a, same}, 200).sigma(0), 0.01 * a.sigma(0));
  EXPECT_NEAR(by_random_roundings(difference, {a, other}, 200).sigma(0) / a.sigma(0), 1.5, 0.3);
  EXPECT_NEAR(by_random_roundings(total, {a, same}, 200).sigma(0) / a.sigma(0), 2.2, 0.4);
  EXPECT_GE(by_random_roundings(total, {a, same}, 200).worst(0), 2 * a.worst(0));
}

// An exact function has no errors, and the worst case is at least the largest possible error.
TEST(TrackedSinkhorn, KnowsWhatIsExactAndHowFarErrorsGo) {
  const Tracked x({1, 2, 3, 4}, {4}, Numerics{});
  const auto twice = [](const std::vector<SampledArray>& a) { return a[0] * 2.0; };
  EXPECT_EQ(by_random_roundings(twice, {x}, 8).worst(2), 0);
  const Tracked third({1.0 / 3}, {1}, Numerics{});
  const auto product = [](const std::vector<SampledArray>& a) { return exp(a[0]) * exp(a[0]); };
  EXPECT_GE(by_random_roundings(product, {third}, 64).worst(0), (exp(third) * exp(third)).worst(0));
  EXPECT_THROW(by_random_roundings(twice, {}, 64), std::invalid_argument);
  EXPECT_THROW(by_random_roundings(twice, {x}, 4), std::invalid_argument);
  EXPECT_THROW(by_random_roundings(twice, {x, Tracked({1}, {1}, {.function_ulp = 3})}, 64),
               std::invalid_argument);
}

}  // namespace tracked_sinkhorn_test
}  // namespace plumb::reference
