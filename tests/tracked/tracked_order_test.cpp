// SPDX-License-Identifier: Apache-2.0
//
// Tests nth_largest, clamp and limited: values computed by hand, and errors that change which
// element is the n-th largest, or that end at a limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "reference/tracked/tracked.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace tracked_order_test {

using Doubles = std::vector<double>;

const Numerics kFp32{};
const double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(TrackedOrder, PlacesAreThoseOfEachLine) {
  const Tracked a({1, 5, 4, 2, 3, 6}, {1, 3, 2}, kFp32);  // lines 1 4 3 and 5 2 6
  EXPECT_EQ(nth_largest(a, 1, 0).values(), (Doubles{4, 6}));
  EXPECT_EQ(nth_largest(a, 1, 1).values(), (Doubles{3, 5}));
  EXPECT_EQ(nth_largest(a, 1, 2).values(), (Doubles{1, 2}));
  EXPECT_EQ(nth_largest(a, 1, 0).sizes(), (TrackedSizes{1, 1, 2}));
  EXPECT_THROW(nth_largest(a, 1, 3), std::invalid_argument);
  EXPECT_THROW(nth_largest(a, 3, 0), std::invalid_argument);
}

TEST(TrackedOrder, InfinitiesHaveTheirPlacesAndNanIsLast) {
  const Tracked a({-kInfinity, kNan, 5, -kInfinity, kInfinity}, {5}, kFp32);
  EXPECT_EQ(nth_largest(a, 0, 0).values(), (Doubles{kInfinity}));
  EXPECT_EQ(nth_largest(a, 0, 1).values(), (Doubles{5}));
  EXPECT_EQ(nth_largest(a, 0, 2).values(), (Doubles{-kInfinity}));
  EXPECT_EQ(nth_largest(a, 0, 3).values(), (Doubles{-kInfinity}));
  EXPECT_TRUE(std::isnan(nth_largest(a, 0, 4).values()[0]));
}

TEST(TrackedOrder, AnExactMaximumIsThatOfTheLine) {
  const Tracked a({1, 5, 4, 2, 3, kNan}, {3, 2}, kFp32);
  EXPECT_EQ(max(a, 1).values()[0], 5);
  EXPECT_EQ(max(a, 0).values()[0], 4);
  EXPECT_TRUE(std::isnan(max(a, 0).values()[1]));
  EXPECT_TRUE(std::isnan(max(a, 1).values()[2]));
  EXPECT_EQ(max(a, 1).worst(0), 0);
}

// Random errors within the elements' bounds never move the n-th largest by more than its bound, and
// nearly reach the bound.
TEST(TrackedOrder, ErrorsMoveAPlaceByWhatTheyMoveElements) {
  constexpr std::int64_t kSize = 12;
  double largest = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    tests::Random random(seed);
    Doubles numbers;
    // The elements differ by about their errors.
    for (std::int64_t i = 0; i < kSize; ++i) numbers.push_back(1 + 0x1p-20 * random.uniform());
    const Tracked a = exp(Tracked(numbers, {kSize}, kFp32));
    for (std::int64_t n = 0; n < kSize; ++n) {
      const Tracked nth = nth_largest(a, 0, n);
      for (int draw = 0; draw < 10; ++draw) {
        Doubles moved;
        for (std::int64_t i = 0; i < kSize; ++i) {
          const double sign = random.uniform() < 0.5 ? -1 : 1;
          moved.push_back(a.values()[i] + sign * a.worst(i));
        }
        std::ranges::sort(moved, std::greater<>());
        const double share = std::abs(moved[n] - nth.values()[0]) / nth.worst(0);
        ASSERT_LE(share, 1 + 1e-9);
        largest = std::max(largest, share);
      }
      EXPECT_GE(6 * nth.sigma(0), 0.5 * nth.worst(0));
    }
  }
  EXPECT_GT(largest, 0.9);
}

TEST(TrackedOrder, AnErrorEndsAtALimit) {
  const Tracked a = exp(Tracked({-1, 0.5, 3}, {3}, kFp32));
  const Tracked limited = clamp(a, 0, a.values()[1]);
  EXPECT_EQ(limited.values(), (Doubles{a.values()[0], a.values()[1], a.values()[1]}));
  EXPECT_EQ(limited.worst(0), a.worst(0));
  EXPECT_NEAR(limited.worst(1), a.worst(1), 1e-6 * a.worst(1));  // downwards
  EXPECT_EQ(limited.worst(2), 0);
  EXPECT_EQ(limited.sigma(2), 0);
  EXPECT_TRUE(std::isnan(clamp(Tracked({kNan}, {}, kFp32), 0, 1).values()[0]));
}

TEST(TrackedOrder, ValuesHaveLimitsWhereTheirCentresAreInside) {
  Estimate half;
  half.resize(1, 1);
  half.shift = {0.5};
  const Tracked limited = clamp(with_errors(Tracked({-0.25}, {1}, kFp32), half), 0, 1);
  EXPECT_EQ(limited.values()[0], 0);
  EXPECT_EQ(limited.centres()[0], 0.25);
}

TEST(TrackedOrder, AnErrorWithoutALimitGetsThatOfTheRange) {
  const Tracked near_0 = exp(Tracked({0}, {}, kFp32)) + -1.0;
  const Tracked quotient = near_0 / (exp(Tracked({0}, {}, kFp32)) + -1.0 + 1e-9);
  EXPECT_EQ(quotient.worst(0), kInfinity);
  const Tracked limited = clamp(quotient, 0, 1);
  EXPECT_EQ(limited.worst(0), 1);
  EXPECT_EQ(limited.sigma(0), 1);
}

// An infinite worst error alone is no reason: 6 sigma are the reach.
TEST(TrackedOrder, ReachesAreCutAtTheLimitOfTheirRow) {
  Estimate errors;
  errors.resize(3, 1);
  errors.sigma = {0.001, kInfinity, kInfinity};
  errors.worst = {kInfinity, kInfinity, kInfinity};
  const Tracked a = with_errors(Tracked({1, 1, 1}, {3, 1}, kFp32), errors);
  const Tracked cut = limited(a, {2, 2, kInfinity});
  EXPECT_EQ(cut.values(), a.values());
  EXPECT_EQ(cut.worst(0), kInfinity);
  EXPECT_NEAR(cut.sigma(0), 0.001, 1e-9);
  EXPECT_EQ(cut.worst(1), 3);  // between -2 and 2
  EXPECT_GE(6 * cut.sigma(1), 3);
  EXPECT_EQ(cut.sigma(2), kInfinity);
  EXPECT_THROW(limited(a, {2, 2}), std::invalid_argument);
}

}  // namespace tracked_order_test
}  // namespace plumb::reference
