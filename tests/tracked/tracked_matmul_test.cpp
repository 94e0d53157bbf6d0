// SPDX-License-Identifier: Apache-2.0
//
// Tests matrix products of tracked arrays against products in fp32 and in emulated matrix units, in
// random orders: no result exceeds its bound, bounds are tight, and errors that rows share are
// known as shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reference/formats/e4m3.h"
#include "reference/rounding.h"
#include "reference/tracked/tracked.h"
#include "tests/support/random.h"
#include "tests/tracked/honest_array.h"

namespace plumb::reference {
namespace tracked_matmul_test {

const Numerics kFp32{};

enum class Stored { fp32, bf16, fp8 };

double stored(Stored format, double x) {
  if (format == Stored::fp32) return static_cast<float>(x);
  if (format == Stored::bf16) return nearest(Format::bf16, x);
  return decode_e4m3(encode_e4m3(4 * x, Dialect::e4m3fn), Dialect::e4m3fn);
}

struct MatmulUnit {
  std::string name;
  Numerics how;
  Stored format;
};
const std::vector<MatmulUnit>& units() {
  static const std::vector<MatmulUnit> all{
      {"fp32", {}, Stored::fp32},
      {"fp32 of bf16", {}, Stored::bf16},
      {"fp32, 4 chains", {.chains = 4}, Stored::fp32},
      {"fp8 in fp32", {}, Stored::fp8},
      {"sm90 bf16", {.unit = SumUnit::sm90_bf16}, Stored::bf16},
      {"sm90 bf16, 2 chains", {.chains = 2, .unit = SumUnit::sm90_bf16}, Stored::bf16},
      {"sm90 fp8", {.unit = SumUnit::sm90_fp8}, Stored::fp8},
      {"sm90 fp8, 2 chains", {.chains = 2, .unit = SumUnit::sm90_fp8}, Stored::fp8},
      {"24 bits", {.unit = SumUnit::bits_24}, Stored::bf16},
      {"24 bits, steps of 32", {.unit = SumUnit::bits_24, .step = 32}, Stored::bf16}};
  return all;
}

enum class Spread { normal, positive, outliers, drifting, subnormal, powers, heavy_tail };
constexpr Spread kSpreads[] = {Spread::normal, Spread::positive, Spread::outliers,
                               Spread::drifting};

std::vector<double> numbers(const TrackedSizes& sizes, Spread spread, Stored format,
                            tests::Random& random) {
  std::vector<double> made(static_cast<std::size_t>(elements_of(sizes)));
  for (double& x : made) {
    x = spread == Spread::positive ? random.uniform() : random.normal();
    if (spread == Spread::outliers && random.below(64) == 0) x *= 30;
    if (spread == Spread::drifting) x += 0.3;
    if (spread == Spread::powers)
      x = std::copysign(std::ldexp(1.0, static_cast<int>(random.below(8)) - 4), x);
    if (spread == Spread::heavy_tail) x *= std::exp(2 * random.normal());
    if (spread == Spread::subnormal) {
      const std::int64_t exponent = random.below(3) == 0 ? random.below(14) - 8 : -10;
      x = std::ldexp(x, static_cast<int>(exponent));
    }
    x = stored(format, x);
  }
  return made;
}

// Collects error / bound of results.
class Margin {
 public:
  void add(const Estimate& estimate, const HonestArray& got) {
    for (std::int64_t row = 0; row < estimate.rows; ++row) {
      double mean = 0;
      for (std::int64_t i = row * estimate.columns; i < (row + 1) * estimate.columns; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double error = got.values[at] - estimate.centre(i);
        const double most = estimate.arithmetic(i);
        beyond_ += !(std::abs(error) <= most + kLeastNormalF32);
        beyond_worst_ += !(std::abs(error) <= estimate.worst[at] + kLeastNormalF32);
        if (error != 0) slack_.push_back(most / std::abs(error));
        if (estimate.value[at] != 0) mean += std::copysign(error, error * estimate.value[at]);
      }
      mean /= static_cast<double>(estimate.columns);
      const auto at = static_cast<std::size_t>(row);
      const double sigma = estimate.row_mean_sigma[at];
      rows_beyond_ += !(std::abs(mean) <= 8 * sigma + estimate.row_systematic[at]);
      if (sigma > 0) {
        squares_ += square(std::max(0.0, std::abs(mean) - estimate.row_systematic[at]) / sigma);
        ++rows_;
      }
    }
  }
  int beyond() const { return beyond_; }
  double means_of_rows() const { return std::sqrt(squares_ / std::max(rows_, 1)); }
  double median() {
    if (slack_.empty()) return 0;
    const auto middle = slack_.begin() + static_cast<std::ptrdiff_t>(slack_.size() / 2);
    std::ranges::nth_element(slack_, middle);
    return *middle;
  }
  void expect(const std::string& what, double most_slack) {
    EXPECT_EQ(beyond_, 0) << what;
    EXPECT_EQ(beyond_worst_, 0) << what << ", worst case";
    EXPECT_EQ(rows_beyond_, 0) << what << ", mean of a row";
    EXPECT_LE(median(), most_slack) << what << ": median of bound over error";
    EXPECT_LT(means_of_rows(), 1.3) << what << ": means of rows";
  }

 private:
  std::vector<double> slack_;
  int beyond_ = 0, beyond_worst_ = 0, rows_beyond_ = 0, rows_ = 0;
  double squares_ = 0;
};

struct MatmulCase {
  std::string name;
  std::function<Tracked(const Tracked& a, const Tracked& b, const Numerics& how)> tracked;
  std::function<HonestArray(const HonestArray& a, const HonestArray& b, const Numerics& how)>
      honest;
};

Margin margin_of(const MatmulCase& which, const MatmulUnit& unit, Spread spread, std::int64_t terms,
                 int seeds, const Numerics& declared) {
  Margin margin;
  const TrackedSizes of_a{4, terms}, of_b{terms, 8};
  for (int seed = 0; seed < seeds; ++seed) {
    tests::Random random(static_cast<std::uint64_t>(seed * 1000 + terms));
    const auto a = numbers(of_a, spread, unit.format, random);
    const auto b = numbers(of_b, spread, unit.format, random);
    const Estimate estimate = estimate_of(
        which.tracked(Tracked(a, of_a, kFp32), Tracked(b, of_b, kFp32), declared), Format::f32);
    for (int order = 0; order < 3; ++order) {
      const HonestArray x({a.begin(), a.end()}, of_a, random, kFp32.function_ulp);
      const HonestArray y({b.begin(), b.end()}, of_b, random, kFp32.function_ulp);
      margin.add(estimate, which.honest(x, y, unit.how));
    }
  }
  return margin;
}

template <class A>
A plain(const A& a, const A& b, const Numerics& how) {
  return matmul(a, b, how);
}
// The elements of a row share the error of its factor.
template <class A>
A of_norm(const A& a, const A& b, const Numerics& how) {
  return matmul(a * rsqrt(mean(a * a, 1) + 1e-6), b, how);
}
template <class A>
A of_stored_norm(const A& a, const A& b, const Numerics& how) {
  return matmul(rounded(a * rsqrt(mean(a * a, 1) + 1e-6), Format::bf16), b, how);
}
// Each element of both operands has its own error.
template <class A>
A of_functions(const A& a, const A& b, const Numerics& how) {
  return matmul(sigmoid(a), exp(b * 0.25), how);
}
// The elements of a column share the error of its factor, and all elements share the error of the
// last factor.
template <class A>
A of_scaled(const A& a, const A& b, const Numerics& how) {
  return matmul(a, b * exp(mean(b, 0)), how) * exp(mean(mean(a, 0), 1));
}
template <class A>
A of_product(const A& a, const A& b, const Numerics& how) {
  const A hidden = matmul(sigmoid(a), b, how);
  return matmul(hidden, joined({hidden, hidden}, 0), how);
}
// Operands that are 0 with nonzero errors.
template <class A>
A near_zero(const A& a, const A& b, const Numerics& how) {
  return matmul(exp(a) - exp(a), exp(b) - exp(b), how);
}
#define PLUMB_MATMUL_CASE(function) \
  MatmulCase { #function, function<Tracked>, function<HonestArray> }

TEST(TrackedMatmul, BoundsSumsOfEveryUnitAndNotMuchMore) {
  for (const MatmulUnit& unit : units()) {
    for (const Spread spread : kSpreads) {
      for (const std::int64_t terms : {5, 128, 512}) {
        Margin margin = margin_of(PLUMB_MATMUL_CASE(plain), unit, spread, terms, 60, unit.how);
        margin.expect(unit.name + ", spread " + std::to_string(static_cast<int>(spread)) + ", " +
                          std::to_string(terms) + " terms",
                      30);
      }
    }
  }
}

// Most products are far below the largest. Units lose many of them whole, and orders with large
// terms first lose most. With the share of lost products that normal data have, 13 of 58,000 sums
// of powers of two and of a heavy tail exceeded their bound, by up to 0.44.
TEST(TrackedMatmul, BoundsSumsOfManyMagnitudes) {
  for (const MatmulUnit& unit : units()) {
    for (const Spread spread : {Spread::powers, Spread::heavy_tail}) {
      for (const std::int64_t terms : {64, 128, 2048}) {
        Margin margin = margin_of(PLUMB_MATMUL_CASE(plain), unit, spread, terms,
                                  terms > 1000 ? 30 : 300, unit.how);
        margin.expect(unit.name + ", spread " + std::to_string(static_cast<int>(spread)) + ", " +
                          std::to_string(terms) + " terms",
                      70);
      }
    }
  }
}

// A unit does not normalise subnormal operands. Here their products have the largest exponents in
// many sums. Without an allowance for them, 6 % of the sums of 8 terms exceeded their bound.
TEST(TrackedMatmul, BoundsSumsOfSubnormalOperands) {
  const MatmulUnit fp8{"sm90 fp8", {.unit = SumUnit::sm90_fp8}, Stored::fp8};
  for (const std::int64_t terms : {8, 32, 64, 256}) {
    Margin margin =
        margin_of(PLUMB_MATMUL_CASE(plain), fp8, Spread::subnormal, terms, 300, fp8.how);
    margin.expect("subnormal, " + std::to_string(terms) + " terms", 70);
  }
}

TEST(TrackedMatmul, BoundsSumsOfUncertainOperands) {
  for (const MatmulCase& which : {PLUMB_MATMUL_CASE(of_norm), PLUMB_MATMUL_CASE(of_stored_norm),
                                  PLUMB_MATMUL_CASE(of_functions), PLUMB_MATMUL_CASE(of_scaled),
                                  PLUMB_MATMUL_CASE(of_product)}) {
    for (const MatmulUnit& unit : units()) {
      const bool needs_fp32 = which.name != "of_stored_norm";
      if (needs_fp32 && unit.how.unit != SumUnit::fp32) continue;
      for (const std::int64_t terms : {5, 128}) {
        Margin margin = margin_of(which, unit, Spread::normal, terms, 100, unit.how);
        margin.expect(which.name + ", " + unit.name + ", " + std::to_string(terms) + " terms", 30);
      }
    }
  }
}

TEST(TrackedMatmul, BoundsWhatIsMadeOfErrorsAlone) {
  for (const std::int64_t terms : {5, 128}) {
    Margin margin =
        margin_of(PLUMB_MATMUL_CASE(near_zero), units().front(), Spread::normal, terms, 100, kFp32);
    margin.expect("near_zero", kInfinity);
  }
}

// Sums in units with fewer bits, and the mean of truncating units, must exceed the bounds of
// declared fp32 sums.
TEST(TrackedMatmul, BoundsAreExceededByAnotherUnit) {
  for (const MatmulUnit& unit : units()) {
    if (unit.how.unit == SumUnit::fp32) continue;
    const Margin margin =
        margin_of(PLUMB_MATMUL_CASE(plain), unit, Spread::positive, 512, 20, kFp32);
    EXPECT_GT(margin.means_of_rows(), 2) << unit.name;
    const bool keeps_bits = unit.how.unit == SumUnit::sm90_bf16;
    EXPECT_GT(margin.beyond(), keeps_bits ? -1 : 10) << unit.name;
  }
}

// Operands rounded to tf32 must exceed the bounds if fp32 products are declared, and stay inside if
// tf32 is declared.
TEST(TrackedMatmul, RoundsOperandsToTheFormatOfProducts) {
  const MatmulCase in_tf32{"in_tf32", plain<Tracked>,
                           [](const HonestArray& a, const HonestArray& b, const Numerics& how) {
                             return matmul(rounded(a, Format::tf32), rounded(b, Format::tf32), how);
                           }};
  const MatmulUnit& fp32 = units().front();
  EXPECT_GT(margin_of(in_tf32, fp32, Spread::normal, 128, 5, kFp32).beyond(), 200);
  Margin margin = margin_of(in_tf32, fp32, Spread::normal, 128, 60, {.product = Format::tf32});
  margin.expect("tf32", 30);
}

// Terms sorted by size, with large ones last (rising) and first.
TEST(TrackedMatmul, BoundsSumsInOrdersOfSize) {
  for (const MatmulUnit& unit : units()) {
    for (const bool rising : {false, true}) {
      tests::Random random(9);
      for (int seed = 0; seed < 200; ++seed) {
        const auto a = numbers({1, 256}, Spread::outliers, unit.format, random);
        const auto b = numbers({256, 1}, Spread::outliers, unit.format, random);
        const Tracked right =
            matmul(Tracked(a, {1, 256}, kFp32), Tracked(b, {256, 1}, kFp32), unit.how);
        std::vector<std::pair<double, std::size_t>> order;
        for (std::size_t i = 0; i < a.size(); ++i) {
          order.emplace_back(std::abs(a[i] * b[i]) * (rising ? 1 : -1), i);
        }
        std::ranges::sort(order);
        std::vector<float> x, y;
        for (const auto& [size, i] : order) {
          x.push_back(static_cast<float>(a[i]));
          y.push_back(static_cast<float>(b[i]));
        }
        const double error = std::abs(honest_dot(x, y, unit.how) - right.centres()[0]);
        ASSERT_LE(error, std::min(6 * right.sigma(0), right.worst(0))) << unit.name;
      }
    }
  }
}

// The unit keeps 13 bits below its largest term, so it loses the 127 small terms, 1/256 each. If it
// took them for terms that lose a place of 8 each, the bias would be 570.
TEST(TrackedMatmul, KnowsThatSmallTermsLoseLittle) {
  const Numerics unit{.unit = SumUnit::sm90_fp8};
  std::vector<double> a(128, 0x1p-4);
  a[7] = 448;
  const Estimate product = estimate_of(
      matmul(Tracked(a, {1, 128}, kFp32), Tracked(a, {128, 1}, kFp32), unit), Format::f32);
  const double lost = 127.0 / 256;
  EXPECT_GT(product.arithmetic(0), lost);
  EXPECT_GT(product.row_systematic[0], lost);
  EXPECT_LT(product.row_systematic[0], 100);
}

TEST(TrackedMatmul, OfBatchesIsThatOfEach) {
  tests::Random random(4);
  const auto a = numbers({2, 3, 16}, Spread::normal, Stored::fp32, random);
  const auto b = numbers({2, 16, 5}, Spread::normal, Stored::fp32, random);
  const Tracked all_a(a, {2, 3, 16}, kFp32), all_b(b, {2, 16, 5}, kFp32);
  const Estimate whole = estimate_of(matmul(sigmoid(all_a), all_b), Format::f32);
  const Tracked one_b = reshaped(sliced(all_b, 0, 0, 1), {16, 5});
  const Estimate alike = estimate_of(matmul(sigmoid(all_a), one_b), Format::f32);
  // Errors are computed by sums in floats, whose order depends on the sizes of the arrays.
  constexpr double kPlaces = 1e-6;
  for (std::int64_t batch = 0; batch < 2; ++batch) {
    const Tracked x = sigmoid(reshaped(sliced(all_a, 0, batch, 1), {3, 16}));
    const Estimate one =
        estimate_of(matmul(x, reshaped(sliced(all_b, 0, batch, 1), {16, 5})), Format::f32);
    const Estimate same = estimate_of(matmul(x, one_b), Format::f32);
    for (std::size_t i = 0; i < 15; ++i) {
      const std::size_t at = static_cast<std::size_t>(batch) * 15 + i;
      EXPECT_EQ(whole.value[at], one.value[i]);
      EXPECT_NEAR(whole.sigma[at], one.sigma[i], kPlaces * one.sigma[i]);
      EXPECT_NEAR(whole.worst[at], one.worst[i], kPlaces * one.worst[i]);
      EXPECT_EQ(alike.value[at], same.value[i]);
      EXPECT_NEAR(alike.worst[at], same.worst[i], kPlaces * same.worst[i]);
    }
  }
}

// `scale` has one error that all elements share; `each` has one error per row.
TEST(TrackedMatmul, KeepsWhatElementsShare) {
  const Numerics coarse{.function_ulp = 1000};
  const Tracked scale = exp(Tracked({0.3}, {1, 1}, coarse));
  const Tracked each = exp(Tracked({0.3, 0.2, 0.1}, {3, 1}, coarse));
  const Tracked ones(std::vector<double>(12, 1.0), {3, 4}, coarse);
  const Tracked weight(std::vector<double>(8, 0.5), {4, 2}, coarse);
  const auto sigma_of_difference = [&](const Tracked& product) {
    return sum(sliced(product, 0, 0, 1) - sliced(product, 0, 1, 1), 1).sigma(0) / scale.sigma(0);
  };
  EXPECT_LT(sigma_of_difference(matmul(ones * scale, weight)), 0.01);
  EXPECT_GT(sigma_of_difference(matmul(ones * each, weight)), 3);
  // Both columns of a row have the same errors, those of the row's elements.
  const Tracked own = matmul(exp(ones), weight);
  EXPECT_LT((sliced(own, 1, 0, 1) - sliced(own, 1, 1, 1)).sigma(0), 0.01 * own.sigma(0));
}

TEST(TrackedMatmul, ConfinesWhatIsNotFinite) {
  std::vector<double> a(8, 1.5);
  a[2] = kInfinity;
  const Tracked product =
      matmul(exp(Tracked(a, {2, 4}, kFp32)), Tracked({1, 2, 3, 4}, {4, 1}, kFp32));
  const Estimate estimate = estimate_of(product, Format::f32);
  EXPECT_EQ(estimate.value[0], kInfinity);
  EXPECT_GT(estimate.arithmetic(1), 0);
  EXPECT_LT(estimate.arithmetic(1), 1e-3);
  // If an operand's error has no limit, the product's has none either, unless the other factor is
  // 0.
  const Tracked zero = exp(Tracked({1.0}, {1, 1}, kFp32)) - exp(Tracked({1.0}, {1, 1}, kFp32));
  const Tracked unlimited = Tracked({1}, {1, 1}, kFp32) / (zero + 1e-30);
  EXPECT_EQ(matmul(unlimited, Tracked({1, 0}, {1, 2}, kFp32)).worst(0), kInfinity);
  EXPECT_EQ(matmul(unlimited, Tracked({1, 0}, {1, 2}, kFp32)).worst(1), 0);
}

TEST(TrackedMatmul, RefusesSizesThatDoNotFit) {
  const auto of = [](const TrackedSizes& sizes) {
    return Tracked(std::vector<double>(static_cast<std::size_t>(elements_of(sizes))), sizes, kFp32);
  };
  EXPECT_EQ(matmul(of({2, 0}), of({0, 3})).worst(0), 0);
  EXPECT_THROW(matmul(of({2, 3}), of({2, 3})), std::invalid_argument);
  EXPECT_THROW(matmul(of({3}), of({3, 2})), std::invalid_argument);
  EXPECT_THROW(matmul(of({2, 2, 3}), of({3, 3, 2})), std::invalid_argument);
  EXPECT_THROW(matmul(of({2, 3}), of({2, 3, 2})), std::invalid_argument);
}

}  // namespace tracked_matmul_test
}  // namespace plumb::reference
