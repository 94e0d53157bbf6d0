// SPDX-License-Identifier: Apache-2.0
//
// Tests the reference's error model of sums with sums computed in fp32: their errors never exceed
// the bound, and the bound is tight.
#include "reference/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace plumb::reference {
namespace bound_test {

using tests::Random;

constexpr int kTerms = 1024;
constexpr int kSeeds = 200;
constexpr int kSumsPerRow = 16;

using Terms = std::vector<float>;

// Draws kTerms numbers and multiplies all of them by one random factor, so that sums lie anywhere
// between two powers of two.
Terms draw(Random& random, const std::function<double()>& value) {
  Terms terms(kTerms);
  const double scale = 1 + random.uniform();
  for (float& term : terms) term = static_cast<float>(scale * value());
  return terms;
}

Terms mixed(Random& random) {
  return draw(random, [&] { return random.normal(); });
}
Terms positive(Random& random) {
  return draw(random, [&] { return random.uniform(); });
}
Terms squares(Random& random) {
  return draw(random, [&] { return std::pow(random.normal(), 2); });
}
Terms outliers(Random& random) {
  return draw(random, [&] { return random.normal() * (random.below(64) == 0 ? 1000 : 1); });
}
Terms long_tail(Random& random) {
  return draw(random, [&] { return std::exp(3 * random.normal()); });
}
Terms equal(Random& random) { return Terms(kTerms, static_cast<float>(1 + random.uniform())); }

Terms ascending(Terms terms) {
  std::sort(terms.begin(), terms.end());
  return terms;
}
Terms descending(Terms terms) {
  std::sort(terms.begin(), terms.end(), [](float a, float b) { return a > b; });
  return terms;
}
Terms ascending_in_magnitude(Terms terms) {
  std::sort(terms.begin(), terms.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  return terms;
}

struct Kind {
  std::string name;
  std::function<Terms(Random& random)> make;
};

const std::vector<Kind> kRandomOrder = {{"mixed_sign", mixed},
                                        {"positive", positive},
                                        {"squares", squares},
                                        {"outliers", outliers},
                                        {"long_tail", long_tail}};

// Terms sorted by magnitude. Their partial sums differ from those of a random order, but are small
// enough that errors stay within 6 sigma.
const std::vector<Kind> kSorted = {
    {"positive_ascending", [](Random& random) { return ascending(positive(random)); }},
    {"squares_descending", [](Random& random) { return descending(squares(random)); }},
    {"mixed_sign_ascending_in_magnitude",
     [](Random& random) { return ascending_in_magnitude(mixed(random)); }}};

// Terms for which only the worst case holds: roundings that repeat, and partial sums that become
// large.
const std::vector<Kind> kStructured = {
    {"equal", equal},
    {"mixed_sign_ascending", [](Random& random) { return ascending(mixed(random)); }}};

// Adds term i to chain i % chains, as threads that stride over a row do, then joins the chains by a
// tree.
float add_up(const Terms& terms, int chains) {
  std::vector<float> sums(terms.begin(), terms.begin() + chains);
  for (std::size_t i = sums.size(); i < terms.size(); ++i) sums[i % sums.size()] += terms[i];
  for (std::size_t left = sums.size(); left > 1; left = (left + 1) / 2) {
    for (std::size_t i = 0; i < left / 2; ++i) sums[i] += sums[i + (left + 1) / 2];
  }
  return sums[0];
}

// The reference's error estimate of the sum.
void estimate_sum(const Terms& terms, const Numerics& numerics, Estimate& estimate,
                  std::int64_t i) {
  double sum = 0, magnitudes = 0, square_sum = 0;
  for (const double term : terms) {
    sum += term;
    magnitudes += std::abs(term);
    square_sum += term * term;
  }
  const SumError error = sum_error(kTerms, sum, magnitudes, square_sum, numerics);
  estimate.value[i] = sum;
  estimate.sigma[i] = error.sigma;
  estimate.worst[i] = error.worst;
}

struct Experiment {
  double largest = 0;               // error / bound
  std::vector<double> looseness;    // bound / error if the error is above a tenth of u |y|
  std::vector<double> row_largest;  // largest error / bound of each row
};

constexpr std::array kChains = {1, 3, 8, 32, 256, 1024};
using Experiments = std::array<Experiment, kChains.size()>;

void add_row(const std::vector<Terms>& sums, int chains, bool structured, Experiment& experiment) {
  Estimate estimate;
  estimate.resize(1, kSumsPerRow);
  estimate.output = Format::f32;
  estimate.structured = structured;
  double row_largest = 0;
  for (int i = 0; i < kSumsPerRow; ++i) {
    estimate_sum(sums[i], {.chains = chains}, estimate, i);
    const double error = std::abs(add_up(sums[i], chains) - estimate.value[i]);
    const double ratio = error / estimate.bound(i);
    row_largest = std::max(row_largest, std::isnan(ratio) ? INFINITY : ratio);
    if (error > kUnitF32 * std::abs(estimate.value[i]) / 10) {
      experiment.looseness.push_back(estimate.bound(i) / error);
    }
  }
  experiment.row_largest.push_back(row_largest);
  experiment.largest = std::max(experiment.largest, row_largest);
}

// Adds the same terms with every number of chains.
Experiments try_out(const Kind& kind, bool structured) {
  Experiments experiments;
  std::vector<Terms> sums(kSumsPerRow);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random(seed);
    for (Terms& terms : sums) terms = kind.make(random);
    for (std::size_t i = 0; i < kChains.size(); ++i) {
      add_row(sums, kChains[i], structured, experiments[i]);
    }
  }
  return experiments;
}

double quantile(std::vector<double> values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

class SumsInRandomOrder : public testing::TestWithParam<Kind> {};

TEST_P(SumsInRandomOrder, NeverExceedTheBoundAndComeNearIt) {
  const Experiments experiments = try_out(GetParam(), false);
  for (std::size_t i = 0; i < kChains.size(); ++i) {
    EXPECT_LE(experiments[i].largest, 1) << kChains[i] << " chains";
    // Errors of few long chains with terms of both signs have exponential tails, so a bound that is
    // never exceeded is far from the median.
    EXPECT_LE(quantile(experiments[i].looseness, 0.5), kChains[i] < 8 ? 24 : 16)
        << kChains[i] << " chains";
    EXPECT_GE(quantile(experiments[i].row_largest, 0.95), 0.1) << kChains[i] << " chains";
  }
}

// Half a million short sums. Without the allowance for few chains, ten in a million sums in a
// single chain exceeded the bound.
TEST(SumBound, HoldsForRareOrders) {
  constexpr int kShort = 128;
  for (const int chains : {1, 4, 32}) {
    Random random(5);
    double largest = 0;
    for (int i = 0; i < 170000; ++i) {
      Terms terms(kShort);
      double sum = 0, magnitudes = 0, square_sum = 0;
      for (float& term : terms) {
        term = static_cast<float>(
            std::ldexp(random.uniform() - 0.5, static_cast<int>(random.below(12))));
        sum += term;
        magnitudes += std::abs(term);
        square_sum += static_cast<double>(term) * term;
      }
      const SumError error = sum_error(kShort, sum, magnitudes, square_sum, {.chains = chains});
      largest = std::max(largest, std::abs(add_up(terms, chains) - sum) / (6 * error.sigma));
    }
    EXPECT_LE(largest, 1) << chains << " chains";
  }
}

class SortedSums : public testing::TestWithParam<Kind> {};

TEST_P(SortedSums, NeverExceedTheBound) {
  const Experiments experiments = try_out(GetParam(), false);
  for (std::size_t i = 0; i < kChains.size(); ++i) {
    EXPECT_LE(experiments[i].largest, 1) << kChains[i] << " chains";
  }
}

class StructuredSums : public testing::TestWithParam<Kind> {};

TEST_P(StructuredSums, ExceedSixSigmaButNotTheWorstCase) {
  const Experiments statistical = try_out(GetParam(), false);
  EXPECT_GT(statistical[0].largest, 1) << "the flag `structured` would not be needed";
  const Experiments worst = try_out(GetParam(), true);
  for (std::size_t i = 0; i < kChains.size(); ++i) {
    EXPECT_LE(worst[i].largest, 1) << kChains[i] << " chains";
  }
}

std::string name_of_kind(const testing::TestParamInfo<Kind>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(, SumsInRandomOrder, testing::ValuesIn(kRandomOrder), name_of_kind);
INSTANTIATE_TEST_SUITE_P(, SortedSums, testing::ValuesIn(kSorted), name_of_kind);
INSTANTIATE_TEST_SUITE_P(, StructuredSums, testing::ValuesIn(kStructured), name_of_kind);

TEST(SumError, IsZeroWhereNothingIsRounded) {
  EXPECT_EQ(sum_error(1, 3, 3, 9, {}).worst, 0);
  EXPECT_EQ(sum_error(0, 0, 0, 0, {}).sigma, 0);
}

TEST(SumError, OfTwoTermsIsThatOfOneAddition) {
  const SumError error = sum_error(2, 3, 3, 5, {});
  EXPECT_DOUBLE_EQ(error.sigma, 3 * kUnitF32 * kUniformSigma);
  EXPECT_DOUBLE_EQ(sum_error(2, 3, 3, 5, {.chains = 2}).sigma, error.sigma);
}

TEST(Bound, LeavesRoomForAFlushedSubnormal) {
  Estimate estimate;
  estimate.resize(1, 1);
  estimate.value[0] = 0x1p-127;
  EXPECT_GE(estimate.bound(0), 0x1p-127);
}

}  // namespace bound_test
}  // namespace plumb::reference
