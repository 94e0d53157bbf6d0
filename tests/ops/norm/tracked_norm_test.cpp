// SPDX-License-Identifier: Apache-2.0
//
// Tests the norms' bounds, which follow from tracked arrays: fp32 results of 1000 seeds in three
// orders never exceed them, and they are as tight as bounds derived by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/norm/inverse_rope.h"
#include "reference/norm/q_head_rms_norm_rope.h"
#include "reference/norm/rms_norm.h"
#include "tests/support/fp32_hyper_connection.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace tracked_norm_test {

constexpr int kSeeds = 1000;
constexpr std::int64_t kHidden = 384;
constexpr double kEps = 1e-6;
constexpr double kNoFault = 0, kSmallFault = 0x1p-16, kLargeFault = 0x1p-8;

const std::vector<fp32::Order> kOrders = {{1, false, false}, {16, true, true}, {64, false, false}};

// `functions`: largest error of functions in ulp. The results below use correctly rounded
// functions.
Numerics numerics_of(const fp32::Order& order, double functions = 0.5) {
  Numerics numerics;
  numerics.chains = order.chains;
  numerics.function_ulp = functions;
  return numerics;
}

// A row with outliers, its weight, and random rotations.
struct NormRow {
  std::vector<std::uint16_t> x, weight;
  std::vector<float> cos_sin;

  NormRow(std::uint64_t seed, std::int64_t columns) {
    tests::Random random(seed);
    const double scale = std::pow(10.0, 6 * random.uniform() - 3);
    for (std::int64_t i = 0; i < columns; ++i) {
      const double outlier = random.below(64) == 0 ? 16 : 1;
      x.push_back(fp32::to_bf16(static_cast<float>(scale * outlier * random.normal())));
      weight.push_back(fp32::to_bf16(static_cast<float>(1 + 0.3 * random.normal())));
    }
    for (int i = 0; i < kRopeDim; ++i) {
      const double angle = i < kRopeDim / 2 ? 6 * random.uniform() : std::acos(cos_sin[i - 32]);
      cos_sin.push_back(static_cast<float>(i < kRopeDim / 2 ? std::cos(angle) : std::sin(angle)));
    }
  }
};

float store(float value) { return fp32::from_bf16(fp32::to_bf16(value)); }

// x * r in fp32, rounded as `rounding` says. `fault`: relative error of r.
std::vector<float> fp32_scaled(const NormRow& row, NormRounding rounding, const fp32::Order& order,
                               double fault) {
  std::vector<float> y, squares;
  for (const std::uint16_t bits : row.x) {
    y.push_back(fp32::from_bf16(bits));
    squares.push_back(y.back() * y.back());
  }
  const float mean = fp32::add_up(squares, order) / static_cast<float>(y.size());
  const double root = 1 / std::sqrt(static_cast<double>(mean + static_cast<float>(kEps)));
  auto r = static_cast<float>(root * (1 + fault));
  if (rounding == NormRounding::factor) r = store(r);
  for (float& v : y) v = rounding == NormRounding::once ? v * r : store(v * r);
  return y;
}

std::vector<float> fp32_norm(const NormRow& row, NormRounding rounding, const fp32::Order& order,
                             double fault) {
  std::vector<float> y = fp32_scaled(row, rounding, order, fault);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= fp32::from_bf16(row.weight[i]);
  return y;
}

// A rotated head in fp32, with or without fused multiply-add.
std::vector<float> fp32_head(const NormRow& row, NormRounding rounding, const fp32::Order& order,
                             double fault, bool fused) {
  std::vector<float> y = fp32_scaled(row, rounding, order, fault);
  for (std::size_t pair = 0; pair < kRopeDim / 2; ++pair) {
    float &even = y[kNopeDim + 2 * pair], &odd = y[kNopeDim + 2 * pair + 1];
    const float c = row.cos_sin[pair], s = row.cos_sin[kRopeDim / 2 + pair];
    const float a = even, b = odd, as = a * s, bs = b * s;
    even = fused ? std::fma(a, c, -bs) : a * c - bs;
    odd = fused ? std::fma(b, c, as) : b * c + as;
  }
  return y;
}

Estimate norm_of(const NormRow& row, NormRounding rounding, const Numerics& numerics) {
  return rms_norm({row.x.data(), row.weight.data(), 1, kHidden, kHidden, kEps, rounding}, numerics);
}
Estimate head_of(const NormRow& row, NormRounding rounding, const Numerics& numerics) {
  return q_head_rms_norm_rope(
      {row.x.data(), row.cos_sin.data(), {0}, 1, 1, kHeadDim, kEps, rounding}, numerics);
}

// Number of fp32 results outside their bounds: after and before rounding to the stored format.
struct ResultsBeyond {
  std::int64_t stored = 0, before = 0;

  void add(const Estimate& expected, const std::vector<float>& got) {
    for (std::int64_t i = 0; i < std::ssize(got); ++i) {
      const float result = got[static_cast<std::size_t>(i)];
      stored += !(std::abs(store(result) - expected.centre(i)) <= expected.bound(i));
      before += !(std::abs(result - expected.centre(i)) <= expected.arithmetic(i));
    }
  }
};

ResultsBeyond norms_beyond(NormRounding rounding, const fp32::Order& order, int seeds,
                           double fault) {
  ResultsBeyond beyond;
  for (int seed = 0; seed < seeds; ++seed) {
    const NormRow row(seed, kHidden);
    beyond.add(norm_of(row, rounding, numerics_of(order)), fp32_norm(row, rounding, order, fault));
  }
  return beyond;
}
ResultsBeyond heads_beyond(NormRounding rounding, const fp32::Order& order, int seeds,
                           double fault) {
  ResultsBeyond beyond;
  for (int seed = 0; seed < seeds; ++seed) {
    const NormRow row(seed, kHeadDim);
    beyond.add(head_of(row, rounding, numerics_of(order)),
               fp32_head(row, rounding, order, fault, seed % 2 == 0));
  }
  return beyond;
}

void expect_none(const ResultsBeyond& beyond, const fp32::Order& order) {
  EXPECT_EQ(beyond.stored, 0) << order.chains << " chains";
  EXPECT_EQ(beyond.before, 0) << order.chains << " chains";
}

TEST(TrackedNorm, NoResultOfManySeedsExceedsItsBound) {
  for (const fp32::Order& order : kOrders) {
    for (const NormRounding rounding : {NormRounding::once, NormRounding::twice}) {
      expect_none(norms_beyond(rounding, order, kSeeds, kNoFault), order);
    }
  }
}
TEST(TrackedNorm, NoRotatedResultOfManySeedsExceedsItsBound) {
  for (const fp32::Order& order : kOrders) {
    for (const NormRounding rounding :
         {NormRounding::once, NormRounding::twice, NormRounding::factor}) {
      expect_none(heads_beyond(rounding, order, kSeeds, kNoFault), order);
    }
  }
}
// Control: r has an error of 2^-16, which is 256 roundings of fp32, or of 2^-8, which is one
// rounding to bf16.
TEST(TrackedNorm, ASmallErrorExceedsItsBound) {
  constexpr int kFew = 10;
  for (const fp32::Order& order : kOrders) {
    const auto norms = norms_beyond(NormRounding::once, order, kFew, kSmallFault);
    const auto heads = heads_beyond(NormRounding::once, order, kFew, kSmallFault);
    EXPECT_GT(norms.before, kFew * kHidden * 9 / 10);
    EXPECT_GT(heads.before, kFew * kHeadDim * 9 / 10);
    EXPECT_GT(norms_beyond(NormRounding::once, order, kFew, kLargeFault).stored,
              kFew * kHidden / 4);
    EXPECT_GT(heads_beyond(NormRounding::twice, order, kFew, kLargeFault).stored,
              kFew * kHeadDim / 4);
  }
}

// ---- bounds derived by hand for rows that are rounded once ----

struct BoundByHand {
  double variance = 0, worst = 0;

  double arithmetic() const { return std::min(6 * std::sqrt(variance), worst); }
};
constexpr double kVariance = kUnitF32 * kUnitF32 / 3;  // relative variance of one rounding

std::vector<double> numbers_of(const std::vector<std::uint16_t>& bits) {
  std::vector<double> numbers;
  for (const std::uint16_t one : bits) numbers.push_back(fp32::from_bf16(one));
  return numbers;
}

// Relative error of r. The mean square has the roundings of the squares, of their sum, of the
// division and of adding eps. The square root halves the relative error, and r has a rounding of
// its own.
BoundByHand factor_by_hand(const std::vector<double>& x, const Numerics& numerics) {
  double squares = 0, fourths = 0;
  for (const double v : x) squares += v * v, fourths += v * v * v * v;
  const auto terms = static_cast<std::int64_t>(x.size());
  const double mean = squares / static_cast<double>(terms), share = mean / (mean + kEps);
  const SumError sum = sum_error(terms, squares, squares, fourths, numerics);
  const double variance_of_sum =
      (square(sum.sigma) + kVariance * fourths) / square(squares) * square(share);
  const double function = function_error(numerics), worst_of_sum = sum.worst / squares + kUnitF32;
  return {square(function) / 3 + variance_of_sum / 4 + 9 * kVariance / 4,
          function + (share * worst_of_sum + 3 * kUnitF32) / 2};
}

// Error of first + second, where both are rounded products.
BoundByHand sum_by_hand(double first, double second) {
  const double sum = first + second;
  return {kVariance * (square(first) + square(second) + square(sum)),
          kUnitF32 * (std::abs(first) + std::abs(second) + std::abs(sum))};
}

// Error of element i of a rotation of y. `relative`: error that all elements of y share. `own`:
// roundings of each element.
BoundByHand rotated_by_hand(const std::vector<double>& y, const NormRow& row, std::size_t i,
                            double sign, const BoundByHand& relative, double own) {
  const double c = row.cos_sin[i / 2], s = row.cos_sin[kRopeDim / 2 + i / 2];
  const double first = y[i] * c, second = (i % 2 == 0 ? -sign : sign) * y[i ^ 1] * s;
  BoundByHand bound = sum_by_hand(first, second);
  bound.variance += relative.variance * square(first + second) +
                    own * kVariance * (square(first) + square(second));
  bound.worst += relative.worst * std::abs(first + second) +
                 own * kUnitF32 * (std::abs(first) + std::abs(second));
  return bound;
}

std::vector<BoundByHand> norm_by_hand(const NormRow& row, const Numerics& numerics,
                                      const Estimate& exact) {
  const BoundByHand r = factor_by_hand(numbers_of(row.x), numerics);
  std::vector<BoundByHand> bounds;
  for (const double y : exact.value) {  // two products, so two roundings
    bounds.push_back(
        {(r.variance + 2 * kVariance) * square(y), (r.worst + 2 * kUnitF32) * std::abs(y)});
  }
  return bounds;
}
std::vector<BoundByHand> head_by_hand(const NormRow& row, const Numerics& numerics,
                                      const Estimate& exact) {
  const std::vector<double> x = numbers_of(row.x);
  const BoundByHand r = factor_by_hand(x, numerics);
  const double factor = exact.value[0] / x[0];
  std::vector<double> rope;
  for (std::size_t i = kNopeDim; i < kHeadDim; ++i) rope.push_back(x[i] * factor);
  std::vector<BoundByHand> bounds;
  for (std::size_t i = 0; i < kNopeDim; ++i) {
    const double y = exact.value[i];
    bounds.push_back({(r.variance + kVariance) * square(y), (r.worst + kUnitF32) * std::abs(y)});
  }
  for (std::size_t i = 0; i < kRopeDim; ++i) {
    bounds.push_back(rotated_by_hand(rope, row, i, 1, r, 1));
  }
  return bounds;
}
std::vector<BoundByHand> inverse_by_hand(const NormRow& row) {
  std::vector<double> rope = numbers_of(row.x);
  rope.erase(rope.begin(), rope.begin() + kNopeDim);
  std::vector<BoundByHand> bounds;
  for (std::size_t i = 0; i < kRopeDim; ++i) {
    bounds.push_back(rotated_by_hand(rope, row, i, -1, {}, 0));
  }
  return bounds;
}

// Median over all elements of tracked bound / bound by hand.
class BoundRatios {
 public:
  void add(const Estimate& tracked, const std::vector<BoundByHand>& by_hand) {
    ASSERT_EQ(tracked.value.size(), by_hand.size());
    for (std::size_t i = 0; i < by_hand.size(); ++i) {
      ratios_.push_back(tracked.arithmetic(static_cast<std::int64_t>(i)) / by_hand[i].arithmetic());
    }
  }
  double median() {
    const auto middle = ratios_.begin() + static_cast<std::ptrdiff_t>(ratios_.size() / 2);
    std::ranges::nth_element(ratios_, middle);
    return *middle;
  }

 private:
  std::vector<double> ratios_;
};

struct MedianRatios {
  double norm = 0, head = 0, inverse = 0;
};
// `functions`: error of functions that the tracked bounds allow, in ulp. The bounds by hand allow
// 1/2.
MedianRatios median_ratios(const fp32::Order& order, double functions) {
  BoundRatios norm, head, inverse;
  const Numerics by_hand = numerics_of(order), tracked = numerics_of(order, functions);
  for (int seed = 0; seed < 20; ++seed) {
    const NormRow row(seed, kHidden), of_head(seed, kHeadDim);
    const Estimate normalised = norm_of(row, NormRounding::once, tracked);
    const Estimate rotated = head_of(of_head, NormRounding::once, tracked);
    norm.add(normalised, norm_by_hand(row, by_hand, normalised));
    head.add(rotated, head_by_hand(of_head, by_hand, rotated));
    inverse.add(inverse_rope({of_head.x.data(), of_head.cos_sin.data(), {0}, 1, 1, kHeadDim}),
                inverse_by_hand(of_head));
  }
  return {norm.median(), head.median(), inverse.median()};
}

TEST(TrackedNorm, BoundsAreAsTightAsThoseByHand) {
  for (const fp32::Order& order : kOrders) {
    const MedianRatios ratios = median_ratios(order, 0.5);
    for (const double ratio : {ratios.norm, ratios.head, ratios.inverse}) {
      EXPECT_LE(ratio, 2) << order.chains << " chains";
      EXPECT_GE(ratio, 0.7) << order.chains << " chains";
    }
  }
}
// Control: bounds that allow much larger errors of functions are wider.
TEST(TrackedNorm, BoundsOfWorseFunctionsAreWider) {
  const MedianRatios ratios = median_ratios(kOrders.back(), 16);
  EXPECT_GT(ratios.norm, 2);
  EXPECT_GT(ratios.head, 2);
}

}  // namespace tracked_norm_test
}  // namespace plumb::reference
