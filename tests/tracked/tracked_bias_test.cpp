// SPDX-License-Identifier: Apache-2.0
//
// Tests sums of squares of bf16 numbers. Their roundings have a mean, which the bounds for few
// chains include.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/rounding_bias.h"
#include "reference/tracked/tracked.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace tracked_bias_test {

constexpr std::int64_t kRows = 100;

double normal_number(tests::Random& random) { return random.normal(); }
double uniform_number(tests::Random& random) { return 2 * random.uniform() - 1; }
double of_one_binade(tests::Random& random) { return 1 + random.uniform(); }

using Draw = double (*)(tests::Random&);

std::vector<double> bf16_rows(std::uint64_t seed, Draw draw, std::int64_t columns) {
  tests::Random random(seed);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < kRows * columns; ++i) {
    numbers.push_back(decode_bf16(encode_bf16(draw(random))));
  }
  return numbers;
}

// One fp32 sum per row. Chains are interleaved and joined by a tree. `chains`: a power of two.
std::vector<float> sums_of_squares(const std::vector<double>& numbers, std::size_t columns,
                                   std::size_t chains) {
  std::vector<float> sums;
  for (std::size_t row = 0; row < kRows; ++row) {
    std::vector<float> of_chains(chains);
    for (std::size_t k = 0; k < columns; ++k) {
      const auto x = static_cast<float>(numbers[row * columns + k]);
      of_chains[k % chains] += x * x;
    }
    for (std::size_t left = chains / 2; left > 0; left /= 2) {
      for (std::size_t i = 0; i < left; ++i) of_chains[i] += of_chains[i + left];
    }
    sums.push_back(of_chains.front());
  }
  return sums;
}

struct SumsBeyond {
  int bound = 0, random_alone = 0;
  double mean = 0, allowance = 0;
};

SumsBeyond sums_beyond(Draw draw, std::int64_t columns, int chains) {
  const Numerics numerics{.chains = chains};
  SumsBeyond beyond;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const std::vector<double> numbers = bf16_rows(seed, draw, columns);
    const std::vector<float> got = sums_of_squares(numbers, static_cast<std::size_t>(columns),
                                                   static_cast<std::size_t>(chains));
    const Tracked x(numbers, {kRows, columns}, numerics);
    const Tracked squares = x * x;
    const Tracked fourths = squares * squares;
    const Estimate right = estimate_of(sum(squares, 1), Format::f32);
    const std::vector<double> of_squares = sum(fourths, 1).values();
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const double error = got[at] - right.value[at], value = right.value[at];
      const double sigma = sum_error(columns, value, value, of_squares[at], numerics).sigma;
      beyond.bound += std::abs(error) > right.arithmetic(row);
      beyond.random_alone += std::abs(error) > 6 * sigma;
      beyond.mean += error;
      beyond.allowance += right.row_systematic[at];
    }
  }
  return beyond;
}

void expect_known(std::int64_t columns, int chains) {
  for (const Draw draw : {normal_number, uniform_number, of_one_binade}) {
    const SumsBeyond beyond = sums_beyond(draw, columns, chains);
    EXPECT_EQ(beyond.bound, 0) << columns << ' ' << chains;
    EXPECT_LE(std::abs(beyond.mean), beyond.allowance);
    EXPECT_GT(std::abs(beyond.mean), 0.1 * beyond.allowance) << "the roundings have no mean";
    if (draw != normal_number) {
      EXPECT_GT(beyond.random_alone, 200) << "random roundings alone explain these errors";
    }
  }
}

TEST(TrackedBias, SumsOfSquaresInOneChainStayWithinTheirBound) { expect_known(4096, 1); }
TEST(TrackedBias, LongSumsOfSquaresInManyChainsStayWithinTheirBound) { expect_known(28672, 32); }

// What a tree of short sums rounds off has a mean too.
TEST(RoundingBias, OfATreeOfShortSumsIsKnown) {
  struct Shape {
    std::int64_t columns;
    std::size_t chains;
  };
  for (const auto& [columns, chains] : {Shape{32, 32}, Shape{128, 32}, Shape{256, 256}}) {
    for (const Draw draw : {normal_number, uniform_number, of_one_binade}) {
      double error = 0, allowance = 0, without_tree = 0;
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const std::vector<double> numbers = bf16_rows(seed, draw, columns);
        const std::vector<float> got =
            sums_of_squares(numbers, static_cast<std::size_t>(columns), chains);
        for (std::int64_t row = 0; row < kRows; ++row) {
          std::vector<double> squares(numbers.begin() + row * columns,
                                      numbers.begin() + (row + 1) * columns);
          for (double& x : squares) x *= x;
          const double sum = std::accumulate(squares.begin(), squares.end(), 0.0);
          const auto parts = static_cast<double>(chains);
          const RoundingBias bias =
              rounding_bias(squares.data(), squares.size(), parts, sum / parts, 0x1p-24);
          error += (got[static_cast<std::size_t>(row)] - sum) / sum;
          allowance += bias.all() / sum;
          without_tree += (bias.of_terms + bias.of_sums) / sum;
        }
      }
      EXPECT_LE(std::abs(error), allowance) << columns << ' ' << chains;
      if (draw != normal_number) continue;
      EXPECT_GT(std::abs(error), 0.1 * allowance) << "the roundings have no mean";
      EXPECT_GT(std::abs(error), without_tree) << "the tree adds nothing";
    }
  }
}

TEST(TrackedBias, IsOfExactTermsOfOneSignInLongChains) {
  constexpr std::int64_t kTerms = 128;
  const std::vector<double> ones(kTerms, 1 + 0x1p-20);
  const auto sigma = [&](Tracked terms) { return sum(std::move(terms), 0).sigma(0); };
  const auto of = [&](std::vector<double> terms, int chains) {
    return Tracked(std::move(terms), {kTerms}, {.chains = chains});
  };
  std::vector<double> signs = ones;
  signs[5] = -signs[5];
  const auto without = [](double total, int chains) {
    return sum_error(kTerms, total, kTerms * (1 + 0x1p-20), kTerms * square(1 + 0x1p-20),
                     {.chains = chains})
        .sigma;
  };
  EXPECT_GT(sigma(of(ones, 1)), 1.05 * without(kTerms * (1 + 0x1p-20), 1));
  EXPECT_DOUBLE_EQ(sigma(of(ones, 16)), without(kTerms * (1 + 0x1p-20), 16));
  EXPECT_DOUBLE_EQ(sigma(of(signs, 1)), without((kTerms - 2) * (1 + 0x1p-20), 1));
}

// The squares of the last row are rounded.
TEST(TrackedBias, OfExactRowsDoesNotDependOnOtherRows) {
  constexpr std::int64_t kTerms = 512;
  tests::Random random(11);
  std::vector<double> numbers;
  for (std::int64_t k = 0; k < kTerms; ++k) {
    numbers.push_back(decode_bf16(encode_bf16(random.normal())));
  }
  const auto sums = [&](const std::vector<double>& of, std::int64_t rows) {
    const Tracked x(of, {rows, kTerms}, {});
    return estimate_of(sum(x * x, 1), Format::f32);
  };
  const Estimate alone = sums(numbers, 1);
  for (std::int64_t k = 0; k < kTerms; ++k) numbers.push_back(1 + 0x1p-20);
  const Estimate both = sums(numbers, 2);
  EXPECT_GT(alone.row_systematic[0], 0);
  EXPECT_EQ(both.row_systematic[0], alone.row_systematic[0]);
  EXPECT_EQ(both.sigma[0], alone.sigma[0]);
  EXPECT_EQ(both.row_systematic[1], 0);
}

}  // namespace tracked_bias_test
}  // namespace plumb::reference
