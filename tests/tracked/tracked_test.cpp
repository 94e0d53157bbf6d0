// SPDX-License-Identifier: Apache-2.0
//
// Tests bounds of tracked arrays (which carry the rounding errors of a right kernel): no correct
// result exceeds them, they are not much larger than errors that occur, and errors that elements
// share are known as shared.
#include "reference/tracked/tracked.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/tracked/tracked_node.h"
#include "tests/support/random.h"
#include "tests/tracked/honest_array.h"

namespace plumb::reference {
namespace tracked_test {

const Numerics kFp32{};

// ---- references for tracked arrays and for HonestArray ----

template <class A>
A row_norm(const A& x, const A& weight) {
  return x * rsqrt(mean(x * x, 1) + 1e-6) * weight;
}
template <class A>
A row_norm_twice(const A& x, const A& weight) {
  return rounded(x * rsqrt(mean(x * x, 1) + 1e-6), Format::bf16) * weight;
}
template <class A>
A softmax(const A& logits, const A&) {
  const A e = exp(logits - max(logits, 1));
  return e / sum(e, 1);
}
// Rotates x and its partner by an angle.
template <class A>
A turned(const A& x, const A& other) {
  const A r = rsqrt(mean(x * x, 1) + 1e-6);
  return (x * r) * 0.8 - (other * r) * 0.6;
}
template <class A>
A doubly_stochastic(const A& logits, const A&) {
  A m = exp(logits);
  for (int i = 0; i < 5; ++i) {
    m = m / (sum(m, 1) + 1e-6);
    m = m / (sum(m, 0) + 1e-6);
  }
  return m;
}
template <class A>
A scores(const A& logits, const A& bias) {
  return sqrt(softplus(logits)) * sigmoid(bias);
}

// Sum of streams, each multiplied by its own gate, which depends on all streams.
template <class A>
A gated(const A& streams, const A& weights) {
  const A token = reshaped(streams, {1, 4 * 48});
  const A mixes = sum(weights * token, 1) * rsqrt(mean(token * token, 1) + 1e-6);
  return sum(sigmoid(mixes * 0.1) * streams, 0);
}

// A weighted sum with more than 16 terms, so that sources become random mixes, and a norm of the
// result.
template <class A>
A attended(const A& values, const A& logits) {
  const A e = exp(logits * 0.3);
  const A out = sum(e * values, 0) / sum(e, 0);
  return out * rsqrt(mean(out * out, 1) + 1e-6);
}

// ---- references of two equal operands: the second is the first ----

template <class A>
A difference(const A& a, const A& b) {
  return exp(a) - exp(b);
}
template <class A>
A relu_near_zero(const A& a, const A& b) {
  const A d = difference(a, b);
  return max(d, d * 0.0) + 0.5;
}
template <class A>
A size_near_zero(const A& a, const A& b) {
  return sum(abs(difference(a, b)), 1);
}
template <class A>
A square_near_zero(const A& a, const A& b) {
  const A d = difference(a, b);
  return d * d;
}
template <class A>
A root_near_zero(const A& a, const A& b) {
  return sqrt(abs(difference(a, b)));
}
template <class A>
A softmax_of_masked(const A& a, const A& b) {
  const A masked = a + (max(a, b) - a) * 0.5;
  const A e = exp(masked - max(masked, 1));
  return e / sum(e, 1);
}

// ---- references in which the same sources belong to other elements ----

template <class A>
A neighbours(const A& a, const A&) {
  const A e = exp(a), none = a * 0.0;
  return joined({sum(none, 0), e}, 0) - joined({e, sum(none, 0)}, 0);
}
template <class A>
A outer_difference(const A& a, const A&) {
  const A e = exp(a);
  return reshaped(e, {12, 1}) - reshaped(e, {1, 12});
}
// A scaled array that is rounded to bf16. The scale puts its elements near ties, so all of them
// round by one error.
template <class A>
A stored_scaled(const A& a, const A& b) {
  const A scale = exp(mean(a * a, 1) * 0.0 + 0.0019512);  // 1 + 2^-9 and a little
  return mean(rounded(reshaped(b, {1, 256}) * scale, Format::bf16), 1);
}

struct TrackedCase {
  std::string name;
  TrackedSizes first, second;
  std::function<Tracked(const Tracked&, const Tracked&)> tracked;
  std::function<HonestArray(const HonestArray&, const HonestArray&)> honest;
  double slack = 30;   // largest allowed median of bound / error
  bool alike = false;  // the second operand is the first
};
void PrintTo(const TrackedCase& which, std::ostream* to) { *to << which.name; }

#define PLUMB_TRACKED_CASE(function, first, second) \
  TrackedCase { #function, first, second, function<Tracked>, function<HonestArray> }

const std::vector<TrackedCase>& all_cases() {
  static const std::vector<TrackedCase> cases = [] {
    std::vector<TrackedCase> all = {
        PLUMB_TRACKED_CASE(row_norm, (TrackedSizes{3, 96}), (TrackedSizes{96})),
        PLUMB_TRACKED_CASE(row_norm_twice, (TrackedSizes{3, 96}), (TrackedSizes{96})),
        PLUMB_TRACKED_CASE(softmax, (TrackedSizes{4, 48}), (TrackedSizes{1})),
        PLUMB_TRACKED_CASE(turned, (TrackedSizes{3, 64}), (TrackedSizes{3, 64})),
        PLUMB_TRACKED_CASE(gated, (TrackedSizes{4, 48}), (TrackedSizes{4, 4 * 48})),
        PLUMB_TRACKED_CASE(attended, (TrackedSizes{40, 32}), (TrackedSizes{40, 1})),
        PLUMB_TRACKED_CASE(scores, (TrackedSizes{4, 32}), (TrackedSizes{32})),
        PLUMB_TRACKED_CASE(doubly_stochastic, (TrackedSizes{4, 4}), (TrackedSizes{1})),
    };
    // A sum loses the correlation with its terms, and each of ten divisions is by such a sum, so
    // bounds are wider.
    all.back().slack = 60;
    const TrackedSizes some{3, 16};
    for (TrackedCase one :
         {PLUMB_TRACKED_CASE(difference, some, some),
          PLUMB_TRACKED_CASE(relu_near_zero, some, some),
          PLUMB_TRACKED_CASE(size_near_zero, some, some),
          PLUMB_TRACKED_CASE(square_near_zero, some, some),
          PLUMB_TRACKED_CASE(root_near_zero, some, some),
          PLUMB_TRACKED_CASE(softmax_of_masked, some, some),
          PLUMB_TRACKED_CASE(neighbours, (TrackedSizes{12, 1}), some),
          PLUMB_TRACKED_CASE(outer_difference, (TrackedSizes{12}), some),
          PLUMB_TRACKED_CASE(stored_scaled, (TrackedSizes{1, 8}), (TrackedSizes{256}))}) {
      one.alike = one.first == one.second;
      one.slack = kInfinity;
      all.push_back(one);
    }
    return all;
  }();
  return cases;
}

std::vector<double> stored_numbers(const TrackedSizes& sizes, tests::Random& random) {
  std::vector<double> numbers(static_cast<std::size_t>(elements_of(sizes)));
  for (double& number : numbers) number = nearest(Format::bf16, 2 * random.normal());
  return numbers;
}

class EveryTracked : public testing::TestWithParam<TrackedCase> {
 protected:
  HonestArray honest(const std::vector<double>& numbers, const TrackedSizes& sizes) {
    return {{numbers.begin(), numbers.end()}, sizes, random_, kFp32.function_ulp};
  }

  tests::Random random_{7};
};

TEST_P(EveryTracked, BoundsHonestResultsAndNotMuchMore) {
  const TrackedCase& which = GetParam();
  double largest = 0;
  std::vector<double> slack;
  for (int seed = 0; seed < 1000; ++seed) {
    const auto first = stored_numbers(which.first, random_);
    const auto second = which.alike ? first : stored_numbers(which.second, random_);
    const Tracked right = which.tracked({first, which.first, kFp32}, {second, which.second, kFp32});
    const Estimate estimate = estimate_of(right, Format::bf16);
    for (int order = 0; order < 3; ++order) {
      const HonestArray got =
          which.honest(honest(first, which.first), honest(second, which.second));
      for (std::int64_t i = 0; i < estimate.rows * estimate.columns; ++i) {
        const double error = std::abs(got.values[static_cast<std::size_t>(i)] - estimate.centre(i));
        const double most = estimate.arithmetic(i) + kLeastNormalF32;
        ASSERT_LE(error, most) << "seed " << seed << ", element " << i << ": "
                               << estimate.centre(i);
        largest = std::max(largest, error / most);
        if (error > 0) slack.push_back(most / error);
      }
    }
  }
  EXPECT_GT(largest, 6 / which.slack) << "the bound is never nearly reached";
  std::ranges::nth_element(slack, slack.begin() + static_cast<std::ptrdiff_t>(slack.size() / 2));
  EXPECT_LT(slack[slack.size() / 2], which.slack) << "median of bound over error";
}

// Errors that a row shares show in the mean over the row.
TEST_P(EveryTracked, KnowsWhatRowsShare) {
  const TrackedCase& which = GetParam();
  double squares = 0;
  std::int64_t rows = 0;
  for (int seed = 0; seed < 300; ++seed) {
    const auto first = stored_numbers(which.first, random_);
    const auto second = which.alike ? first : stored_numbers(which.second, random_);
    const Estimate estimate = estimate_of(
        which.tracked({first, which.first, kFp32}, {second, which.second, kFp32}), Format::bf16);
    const HonestArray got = which.honest(honest(first, which.first), honest(second, which.second));
    for (std::int64_t row = 0; row < estimate.rows; ++row) {
      double mean = 0;
      for (std::int64_t i = row * estimate.columns; i < (row + 1) * estimate.columns; ++i) {
        const double error = got.values[static_cast<std::size_t>(i)] - estimate.centre(i);
        const double value = estimate.value[static_cast<std::size_t>(i)];
        if (value != 0) mean += std::copysign(error, error * value);  // signed as in the judge
      }
      mean /= static_cast<double>(estimate.columns);
      const double sigma = estimate.row_mean_sigma[static_cast<std::size_t>(row)];
      const double systematic = estimate.row_systematic[static_cast<std::size_t>(row)];
      ASSERT_LE(std::abs(mean), 8 * sigma + systematic + kLeastNormalF32) << seed << ' ' << row;
      if (sigma > 0) squares += square(mean / sigma);
      ++rows;
    }
  }
  EXPECT_LT(std::sqrt(squares / static_cast<double>(rows)), 1.3);
}

INSTANTIATE_TEST_SUITE_P(References, EveryTracked, testing::ValuesIn(all_cases()),
                         [](const auto& one) { return one.param.name; });

// A rounding that the reference does not declare must exceed the bounds.
TEST(TrackedBounds, AreExceededByARoundingThatNobodySays) {
  tests::Random random(5);
  const TrackedSizes sizes{4, 256};
  const auto x = stored_numbers(sizes, random), weight = stored_numbers({256}, random);
  const Estimate estimate =
      estimate_of(row_norm(Tracked(x, sizes, kFp32), Tracked(weight, {256}, kFp32)), Format::bf16);
  const HonestArray twice = row_norm_twice(
      HonestArray({x.begin(), x.end()}, sizes, random, kFp32.function_ulp),
      HonestArray({weight.begin(), weight.end()}, {256}, random, kFp32.function_ulp));
  std::int64_t beyond = 0;
  for (std::int64_t i = 0; i < 4 * 256; ++i) {
    const double error = std::abs(twice.values[static_cast<std::size_t>(i)] - estimate.centre(i));
    beyond += error > estimate.arithmetic(i);
  }
  EXPECT_GT(beyond, 900);
}

// ---- single rules ----

// A value with an error so large that the roundings of sums and products are negligible.
Tracked uncertain(double value) { return exp(Tracked({value}, {1}, {.function_ulp = 100})); }

Tracked uncertain_like(double value) { return exp(Tracked({value}, {1}, kFp32)); }

TEST(Tracked, AddsUpWhatIsTheSame) {
  const Tracked a = uncertain(0.3), b = uncertain(0.3);
  const double one = a.sigma(0);
  EXPECT_NEAR((a + a).sigma(0), 2 * one, 0.02 * one);
  EXPECT_NEAR((a + b).sigma(0), std::sqrt(2.0) * one, 0.02 * one);
  EXPECT_NEAR((a - a).sigma(0), 0, 1e-3 * one);
  EXPECT_NEAR((a - b).sigma(0), std::sqrt(2.0) * one, 0.02 * one);
}

TEST(Tracked, KnowsWhichProductsAreExact) {
  const Tracked x({0x1.fep3, 3}, {2}, kFp32);
  EXPECT_EQ((x * x).sigma(0), 0);
  EXPECT_EQ((x * x).worst(1), 0);
  EXPECT_GT((x * x * x * x).worst(0), 0);
  EXPECT_EQ((x * 0.5).worst(0), 0);
  EXPECT_GT((x * 0.1).worst(0), 0);
}

TEST(Tracked, ForgetsErrorsThatRoundAway) {
  const Tracked far = rounded(Tracked({1.001}, {1}, kFp32) * 1.0, Format::bf16);
  EXPECT_EQ(far.worst(0), 0);
  EXPECT_EQ(far.centres()[0], 1);
  EXPECT_EQ(far.values()[0], 1.001);
  // Halfway between 1 and the next bf16 number.
  const Tracked tie = rounded(uncertain(std::log(1 + 0x1p-8)), Format::bf16);
  EXPECT_EQ(tie.worst(0), 0x1p-7);
}

TEST(Tracked, RefusesSizesThatDoNotFit) {
  const Tracked a({1, 2, 3}, {3}, kFp32), b({1, 2}, {2}, kFp32);
  EXPECT_THROW(a + b, std::invalid_argument);
  EXPECT_THROW(sum(a, 1), std::invalid_argument);
  EXPECT_THROW(Tracked({1, 2}, {3}, kFp32), std::invalid_argument);
  EXPECT_THROW(sliced(a, 0, 2, 2), std::invalid_argument);
  EXPECT_THROW(reshaped(a, {2, 2}), std::invalid_argument);
  EXPECT_THROW(joined({a, reshaped(a, {1, 3})}, 0), std::invalid_argument);
  EXPECT_THROW(joined(std::vector<Tracked>{a}, 3), std::invalid_argument);
  EXPECT_THROW(joined(std::vector<Tracked>{}, 0), std::invalid_argument);
  EXPECT_THROW(max(sliced(a, 0, 0, 0), 0), std::invalid_argument);
  EXPECT_THROW(Tracked({1}, {-1, -1}, kFp32), std::invalid_argument);
  EXPECT_THROW(Tracked({1}, TrackedSizes(9, 1), kFp32), std::invalid_argument);
  EXPECT_THROW(rounded(a, Format::tf32_truncated), std::invalid_argument);
  EXPECT_THROW(a + Tracked({1}, {1}, {.function_ulp = 3}), std::invalid_argument);
}

TEST(Tracked, KeepsSourcesThroughSlicesAndJoins) {
  const Tracked scale = uncertain(0.1);
  const Tracked x({1, 2, 3, 4}, {4}, *scale.node()->numerics);
  const Tracked scaled = x * scale;
  const Tracked back = joined({sliced(scaled, 0, 0, 2), sliced(scaled, 0, 2, 2)}, 0);
  EXPECT_EQ(back.values(), scaled.values());
  const Estimate whole = estimate_of(scaled, Format::bf16), parts = estimate_of(back, Format::bf16);
  EXPECT_NEAR(parts.row_mean_sigma[0], whole.row_mean_sigma[0], 1e-3 * whole.row_mean_sigma[0]);
  EXPECT_GT(whole.row_mean_sigma[0], 2.4 * scale.sigma(0) / 1.0);
}

// A non-finite element must not affect the errors of the others.
TEST(Tracked, ConfinesWhatIsNotFinite) {
  const double infinite = std::numeric_limits<double>::infinity();
  const Tracked logits({0.5, -infinite, 1.5, -infinite}, {1, 4}, kFp32);
  const Tracked e = exp(logits * uncertain_like(0.9));
  const Estimate row = estimate_of(e / sum(e, 1), Format::bf16);
  for (const int i : {0, 2}) EXPECT_TRUE(row.arithmetic(i) > 0 && row.arithmetic(i) < 1e-5) << i;
  for (const int i : {1, 3}) EXPECT_EQ(row.value[static_cast<std::size_t>(i)], 0);
  // An error without a limit becomes limited again by sigmoid and by a factor of 0.
  const Tracked zero = uncertain_like(0.3) - uncertain_like(0.3 + 1e-9);
  const Tracked unlimited = Tracked({1}, {1}, kFp32) / zero;
  EXPECT_EQ(unlimited.worst(0), infinite);
  EXPECT_LE(estimate_of(sigmoid(unlimited), Format::bf16).arithmetic(0), 1.01);
  EXPECT_FALSE(std::isnan(estimate_of(unlimited * 0.0, Format::bf16).arithmetic(0)));
  EXPECT_FALSE(std::isnan(estimate_of(unlimited - unlimited, Format::bf16).arithmetic(0)));
  EXPECT_EQ(log(-zero).worst(0), infinite);
}

// x / (1 + exp(-x)) is 0 in implementations where exp overflows. x * sigmoid(x) is right as well.
template <class A>
A divided_by_exp(const A& x) {
  return x / (exp(x * -1.0) + 1.0);
}
TEST(Tracked, KnowsThatADivisorMayOverflow) {
  std::vector<double> numbers;
  for (int i = 0; i < 64; ++i) numbers.push_back(-100 + i / 2.0);
  const Tracked x(numbers, {64}, kFp32);
  const Estimate divided = estimate_of(divided_by_exp(x), Format::f32);
  const Estimate by_name = estimate_of(x * sigmoid(x), Format::f32);
  const Estimate root = estimate_of(rsqrt(x * x * 1e38), Format::f32);
  tests::Random random(7);
  const HonestArray honest({numbers.begin(), numbers.end()}, {64}, random, kFp32.function_ulp);
  const HonestArray got = divided_by_exp(honest), got_root = rsqrt(honest * honest * 1e38);
  int zeros = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    const auto at = static_cast<std::size_t>(i);
    zeros += got.values[at] == 0;
    EXPECT_LE(std::abs(got.values[at] - divided.centre(i)), divided.bound(i)) << numbers[at];
    EXPECT_LE(std::abs(got.values[at] - by_name.centre(i)), by_name.bound(i)) << numbers[at];
    EXPECT_LE(std::abs(got_root.values[at] - root.centre(i)), root.bound(i)) << numbers[at];
  }
  EXPECT_GE(zeros, 20);
  // Where nothing overflows, 0 must exceed the bound.
  EXPECT_LT(divided.bound(63), 1e-5 * std::abs(divided.value[63]));
}

// Joining single elements that share a source keeps the shared source.
TEST(Tracked, JoinsElementsThatShareASource) {
  const Tracked s = uncertain_like(0.2);
  const Tracked x({1, 2, 3}, {3}, kFp32);
  const Tracked whole = joined({s, x * s}, 0);
  EXPECT_NEAR(sum(whole, 0).sigma(0), 7 * s.sigma(0), s.sigma(0));
}

TEST(Tracked, TakesEqualSlicesForTheSame) {
  const Tracked e = exp(Tracked({0.1, 0.2, 0.3, 0.4}, {4}, {.function_ulp = 100}));
  const auto first_two = [&] { return sliced(e, 0, 0, 2); };
  EXPECT_LT((first_two() - first_two()).sigma(0), 1e-3 * e.sigma(0));
  EXPECT_GT((first_two() - sliced(e, 0, 2, 2)).sigma(0), e.sigma(0));
}

}  // namespace tracked_test
}  // namespace plumb::reference
