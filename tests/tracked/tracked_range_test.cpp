// SPDX-License-Identifier: Apache-2.0
//
// Tests sums whose terms together exceed fp32's range: a right kernel gets infinity, and goes on
// with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/tracked/tracked.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace tracked_range_test {

constexpr std::int64_t kTerms = 1024;

std::vector<double> numbers(float scale) {
  tests::Random random(3);
  std::vector<double> made;
  for (std::int64_t i = 0; i < kTerms; ++i) {
    made.push_back(static_cast<float>(scale * random.normal()));
  }
  return made;
}

double bound(const Tracked& one) { return std::min(6 * one.sigma(0), one.worst(0)); }

Tracked scale_of(const std::vector<double>& x) {
  const Tracked row(x, {kTerms}, Numerics{.chains = 32});
  return rsqrt(mean(row * row, 0));
}

float scale_in_fp32(const std::vector<double>& x) {
  float squares = 0;
  for (const double number : x) squares += static_cast<float>(number) * static_cast<float>(number);
  return 1 / std::sqrt(squares / kTerms);
}

// At 1e18 only the sum of the squares is infinite. Their mean would be finite.
TEST(TrackedRange, AnInfiniteSumOfSquaresIsAllowed) {
  for (const float scale : {1e18F, 5e18F, 1e19F, 1e25F, 1e36F}) {
    const std::vector<double> x = numbers(scale);
    ASSERT_EQ(scale_in_fp32(x), 0) << scale;
    const Tracked expected = scale_of(x);
    EXPECT_LE(expected.values()[0], bound(expected)) << scale;
  }
}

TEST(TrackedRange, ASmallerSumKeepsItsBound) {
  const std::vector<double> x = numbers(1e17F);
  const Tracked expected = scale_of(x);
  EXPECT_LE(std::abs(scale_in_fp32(x) - expected.values()[0]), bound(expected));
  EXPECT_LT(bound(expected), 1e-4 * expected.values()[0]);
}

// The sum is small, but partial sums may be infinite.
TEST(TrackedRange, TermsThatCancelMayBecomeInfiniteOnTheWay) {
  std::vector<double> terms(kTerms, 1e38);
  for (std::size_t i = 0; i < terms.size(); i += 2) terms[i] = -1e38;
  EXPECT_GT(bound(sum(Tracked(terms, {kTerms}, Numerics{}), 0)), 1e40);
}

}  // namespace tracked_range_test
}  // namespace plumb::reference
