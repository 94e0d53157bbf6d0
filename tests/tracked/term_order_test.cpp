// SPDX-License-Identifier: Apache-2.0
//
// Tests matrix products whose terms are added in a usual order against fp32 sums in these orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/tracked/tracked.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace term_order_test {

struct Operands {
  std::vector<double> a, b;
};

Operands operands(std::int64_t terms, double mean, tests::Random& random) {
  Operands made;
  for (std::int64_t k = 0; k < terms; ++k) {
    made.a.push_back(static_cast<float>(random.normal() + mean));
    made.b.push_back(static_cast<float>(random.normal() + mean));
  }
  return made;
}

// Terms are distributed to `lanes` sequential sums, in ascending or descending order.
float sum_in_lanes(const Operands& of, std::size_t lanes, bool descending) {
  std::vector<float> sums(lanes);
  for (std::size_t i = 0; i < of.a.size(); ++i) {
    const std::size_t k = descending ? of.a.size() - 1 - i : i;
    sums[k % lanes] += static_cast<float>(of.a[k]) * static_cast<float>(of.b[k]);
  }
  for (; lanes > 1; lanes /= 2) {
    for (std::size_t i = 0; i < lanes / 2; ++i) sums[i] += sums[i + lanes / 2];
  }
  return sums[0];
}

Tracked product(const Operands& of, const Numerics& how, TermOrder order) {
  const auto terms = static_cast<std::int64_t>(of.a.size());
  return matmul(Tracked(of.a, {1, terms}, {}), Tracked(of.b, {terms, 1}, {}), how, order);
}

double bound_of(const Tracked& product) { return std::min(6 * product.sigma(0), product.worst(0)); }

TEST(TermOrder, UsualOrdersHaveTighterBounds) {
  for (const int lanes : {1, 2, 4, 8}) {
    for (const double mean : {0.0, 0.3}) {
      for (const std::int64_t terms : {5, 100, 1030}) {
        tests::Random random(static_cast<std::uint64_t>(terms * lanes));
        double usual = 0, any = 0;
        for (int seed = 0; seed < 1000; ++seed) {
          const Operands of = operands(terms, mean, random);
          const Numerics how{.chains = lanes};
          const Tracked right = product(of, how, TermOrder::usual);
          for (const bool descending : {false, true}) {
            const double got = sum_in_lanes(of, static_cast<std::size_t>(lanes), descending);
            ASSERT_LE(std::abs(got - right.values()[0]), bound_of(right))
                << lanes << " lanes, " << terms << " terms";
          }
          usual += bound_of(right);
          any += bound_of(product(of, how, TermOrder::any));
        }
        const double narrower = lanes == 1 ? 0.85 : 1;
        EXPECT_LE(usual, any * (terms > 1000 && mean == 0 ? narrower : 1))
            << lanes << " lanes, " << terms << " terms, mean " << mean;
      }
    }
  }
}

// Terms of alternating signs: the sum is near 0 in one chain, but two lanes are far from it and
// cancel each other. Most of their sums exceed the bound of a random order.
TEST(TermOrder, KnowsLanesThatCancel) {
  tests::Random random(3);
  int beyond = 0;
  constexpr int kSeeds = 100;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Operands of = operands(4096, 0, random);
    for (std::size_t k = 0; k < of.a.size(); ++k) {
      of.a[k] = std::abs(of.a[k]);
      of.b[k] = k % 2 == 0 ? 1 : -1;
    }
    const Tracked right = product(of, {}, TermOrder::usual);
    const double error = std::abs(sum_in_lanes(of, 2, false) - right.values()[0]);
    EXPECT_LE(error, bound_of(right));
    beyond += error > bound_of(product(of, {}, TermOrder::any));
  }
  EXPECT_GT(beyond, kSeeds / 4);
}

TEST(TermOrder, KnowsBatchesAndManyRows) {
  tests::Random random(5);
  const std::int64_t m = 70, k = 40, n = 3;
  std::vector<double> a, b;
  for (std::int64_t i = 0; i < 2 * m * k; ++i) a.push_back(random.normal());
  for (std::int64_t i = 0; i < 2 * k * n; ++i) b.push_back(random.normal());
  const Tracked all_a(a, {2, m, k}, {}), all_b(b, {2, k, n}, {});
  const Tracked all = matmul(all_a, all_b, {}, TermOrder::usual);
  for (std::int64_t batch = 0; batch < 2; ++batch) {
    const Tracked of_batch = reshaped(sliced(all_b, 0, batch, 1), {k, n});
    for (std::int64_t row = 0; row < m; ++row) {
      const Tracked one = reshaped(sliced(sliced(all_a, 0, batch, 1), 1, row, 1), {1, k});
      const Tracked alone = matmul(one, of_batch, {}, TermOrder::usual);
      for (std::int64_t column = 0; column < n; ++column) {
        const double sigma = all.sigma((batch * m + row) * n + column);
        // Partial sums are computed in floats, whose order depends on the sizes of the arrays.
        EXPECT_NEAR(sigma, alone.sigma(column), 1e-5 * sigma);
      }
    }
  }
}

}  // namespace term_order_test
}  // namespace plumb::reference
