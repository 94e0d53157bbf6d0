// SPDX-License-Identifier: Apache-2.0
//
// Tests sums in which many terms are 0, such as scores after max(0, s): their additions do not
// round, so the bound is that of the other terms. Right sums in random orders stay inside.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/tracked/tracked.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace tracked_zeros_test {

constexpr std::int64_t kTerms = 64;
constexpr int kChains = 8;
const Numerics kEightChains{.chains = kChains};

// Normal numbers, of which `share` are not 0.
std::vector<double> numbers(double share, std::int64_t count, tests::Random& random) {
  std::vector<double> made;
  for (std::int64_t i = 0; i < count; ++i) {
    const double number = static_cast<float>(random.normal());
    made.push_back(random.uniform() < share ? number : 0);
  }
  return made;
}

Tracked sum_of(const std::vector<double>& terms) {
  return sum(Tracked(terms, {std::ssize(terms)}, kEightChains), 0);
}

float add_up_in_chains(std::vector<double> terms, tests::Random& random) {
  for (std::size_t i = terms.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)));
    std::swap(terms[i - 1], terms[other]);
  }
  std::vector<float> sums(kChains);
  for (std::size_t i = 0; i < terms.size(); ++i) sums[i % kChains] += static_cast<float>(terms[i]);
  for (std::size_t left = kChains; left > 1; left /= 2) {
    for (std::size_t i = 0; i < left / 2; ++i) sums[i] += sums[i + left / 2];
  }
  return sums[0];
}

TEST(TrackedZeros, SumsStayInside) {
  constexpr int kSeeds = 2000, kOrders = 5;
  for (const double share : {0.06, 0.125, 0.25, 0.5, 0.9}) {
    tests::Random random(7);
    for (int seed = 0; seed < kSeeds; ++seed) {
      const std::vector<double> terms = numbers(share, kTerms, random);
      const Tracked total = sum_of(terms);
      for (int order = 0; order < kOrders; ++order) {
        const double error = std::abs(add_up_in_chains(terms, random) - total.values()[0]);
        ASSERT_LE(error, std::min(6 * total.sigma(0), total.worst(0))) << share;
      }
    }
  }
}

// 32 terms in chains of 4 on average. Zeros make the lengths of the chains uneven, which adds 5 %.
TEST(TrackedZeros, HardlyWidenTheBoundOfTheOtherTerms) {
  tests::Random random(8);
  std::vector<double> terms = numbers(1, kTerms / 2, random);
  const double without = sum_of(terms).sigma(0);
  terms.resize(kTerms);
  EXPECT_GT(sum_of(terms).sigma(0), without);
  EXPECT_LT(sum_of(terms).sigma(0), 1.1 * without);
}

TEST(TrackedZeros, OneTermIsItsOwnSum) {
  std::vector<double> terms(kTerms);
  EXPECT_EQ(sum_of(terms).worst(0), 0);
  terms[5] = 0.1F;
  EXPECT_EQ(sum_of(terms).worst(0), 0);
}

}  // namespace tracked_zeros_test
}  // namespace plumb::reference
