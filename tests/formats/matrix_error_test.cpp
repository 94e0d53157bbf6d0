// SPDX-License-Identifier: Apache-2.0
//
// Tests the error model of sums in matrix units with the emulated units: sums never exceed the
// bound, the bound is tight, and it includes the mean of truncation.
#include "reference/matrix_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/formats/e4m3.h"
#include "tests/support/margins.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace matrix_error_test {

using tests::Random;

constexpr int kSumsPerRow = 32;

struct Operands {
  std::vector<float> a, b;

  double term(std::size_t i) const { return double{a[i]} * double{b[i]}; }
  void reorder(const std::function<double(double)>& key) {
    std::vector<std::size_t> order(a.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::size_t i, std::size_t j) { return key(term(i)) < key(term(j)); });
    Operands sorted = *this;
    for (std::size_t i = 0; i < order.size(); ++i) {
      sorted.a[i] = a[order[i]];
      sorted.b[i] = b[order[i]];
    }
    *this = sorted;
  }
};

enum class Kind { mixed, drifting, positive, outliers, long_tail, equal };

double draw(Kind kind, Random& random) {
  switch (kind) {
    case Kind::mixed: return random.normal();
    case Kind::drifting: return 0.3 + random.normal();
    case Kind::positive: return random.uniform();
    case Kind::outliers: return random.normal() * (random.below(64) == 0 ? 30 : 1);
    case Kind::long_tail: return random.normal() * std::exp(random.normal());
    case Kind::equal: return 1.375;
  }
  return 0;
}

Operands make_operands(Kind kind, bool fp8, std::int64_t terms, Random& random) {
  Operands operands;
  const double scale = (fp8 ? 4 : 1) * (1 + random.uniform());
  const bool one_sign = kind == Kind::positive || kind == Kind::equal || kind == Kind::drifting;
  for (std::int64_t i = 0; i < terms; ++i) {
    const double x = scale * draw(kind, random);
    const double y = kind == Kind::equal ? 1.125 : one_sign ? random.uniform() : random.normal();
    const auto rounded = [&](double value) {
      return static_cast<float>(
          fp8 ? decode_e4m3(encode_e4m3(value, Dialect::e4m3fn), Dialect::e4m3fn)
              : decode_bf16(encode_bf16(value)));
    };
    operands.a.push_back(rounded(x));
    operands.b.push_back(rounded(y));
  }
  return operands;
}

// Sum of products whose contiguous parts are chains in the matrix unit, joined by a tree.
float unit_sum(const Operands& operands, const Numerics& numerics) {
  const auto n = std::ssize(operands.a);
  std::vector<float> sums;
  for (int c = 0; c < numerics.chains; ++c) {
    const std::int64_t begin = n * c / numerics.chains, end = n * (c + 1) / numerics.chains;
    sums.push_back(
        matrix_sum(matrix_unit(numerics), &operands.a[begin], &operands.b[begin], end - begin));
  }
  for (std::size_t left = sums.size(); left > 1; left = (left + 1) / 2) {
    for (std::size_t i = 0; i < left / 2; ++i) sums[i] += sums[i + (left + 1) / 2];
  }
  return sums[0];
}

MatrixError matrix_sum_error(std::int64_t terms, const TermSums& sums, int product_bits,
                             const Numerics& numerics) {
  if (!(sums.squares > 0)) return {};
  const SumErrorFactors factors =
      matrix_error_factors(terms, matrix_terms(terms, sums, product_bits, numerics), numerics);
  MatrixError error;
  error.bias = factors.bias * std::abs(sums.sum);
  error.sigma = std::sqrt(factors.of_squares * sums.squares + factors.of_total * square(sums.sum));
  error.worst = factors.of_magnitudes * sums.magnitudes;
  return error;
}

// A row of sums with their estimates.
struct Row {
  Estimate expected;
  std::vector<float> got;
  double bias = 0;  // allowed mean error
  double mean = 0;  // mean of sign(value) * error

  Row() {
    expected.resize(1, kSumsPerRow);
    expected.output = Format::f32;
  }
  void add(const Operands& operands, const Numerics& numerics) {
    TermSums sums;
    for (std::size_t i = 0; i < operands.a.size(); ++i) {
      sums.add(operands.term(i));
    }
    const int product_bits = numerics.unit == SumUnit::sm90_fp8 ? 8 : 16;
    const auto error = matrix_sum_error(std::ssize(operands.a), sums, product_bits, numerics);
    const std::size_t at = got.size();
    expected.value[at] = sums.sum;
    expected.sigma[at] = error.sigma + error.bias / 6;
    expected.worst[at] = error.worst;
    got.push_back(unit_sum(operands, numerics));
    bias += error.bias / kSumsPerRow;
    mean += std::copysign(1.0, sums.sum) * (got.back() - sums.sum) / kSumsPerRow;
  }
  double sigma() const {
    double variance = 0;
    for (const double s : expected.sigma) variance += s * s;
    return std::sqrt(variance) / kSumsPerRow;
  }
};

struct Declared {
  std::string name;
  Numerics numerics;
};

const std::vector<Declared>& units() {
  static const std::vector<Declared> all{
      {"sm90 bf16", {.unit = SumUnit::sm90_bf16}},
      {"sm90 bf16, 4 chains", {.chains = 4, .unit = SumUnit::sm90_bf16}},
      {"sm90 bf16, steps of 8", {.unit = SumUnit::sm90_bf16, .step = 8}},
      {"sm90 fp8", {.unit = SumUnit::sm90_fp8}},
      {"24 bits", {.unit = SumUnit::bits_24}},
      {"24 bits, steps of 32", {.unit = SumUnit::bits_24, .step = 32}}};
  return all;
}

void check(const Declared& declared, Kind kind, std::int64_t terms, int seeds,
           const std::function<void(Operands&)>& order) {
  tests::Margins margins;
  double mean = 0, bias = 0, variance = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    Random random(static_cast<std::uint64_t>(seed * 10 + static_cast<int>(kind)));
    Row row;
    for (int i = 0; i < kSumsPerRow; ++i) {
      const bool fp8 = declared.numerics.unit == SumUnit::sm90_fp8;
      Operands operands = make_operands(kind, fp8, terms, random);
      if (order) order(operands);
      row.add(operands, declared.numerics);
    }
    margins.add(row.expected, row.got);
    mean += row.mean;
    bias += row.bias;
    variance += row.sigma() * row.sigma();
  }
  const std::string what = declared.name + ", kind " + std::to_string(static_cast<int>(kind)) +
                           ", " + std::to_string(terms) + " terms";
  if (order) {
    margins.expect_honest(what);
  } else {
    margins.expect_honest_and_tight(what, 30);
  }
  EXPECT_LE(std::abs(mean), bias + 5 * std::sqrt(variance)) << what;
}

constexpr Kind kKinds[] = {Kind::mixed, Kind::drifting, Kind::positive, Kind::outliers,
                           Kind::long_tail};

TEST(MatrixError, HoldsForEmulatedSumsAndIsTight) {
  for (const Declared& declared : units()) {
    for (const Kind kind : kKinds) {
      for (const std::int64_t terms : {128, 512, 1200}) check(declared, kind, terms, 36, {});
    }
  }
}

TEST(MatrixError, HoldsInOrdersOfMagnitude) {
  for (const Declared& declared : units()) {
    for (const Kind kind : kKinds) {
      check(declared, kind, 512, 8,
            [](Operands& o) { o.reorder([](double t) { return std::abs(t); }); });
      check(declared, kind, 512, 8,
            [](Operands& o) { o.reorder([](double t) { return -std::abs(t); }); });
    }
  }
}

// The mean error of the emulated sums exceeds what fp32 sums rounded to nearest have by chance.
TEST(MatrixError, TruncationShowsWhereRoundingToNearestIsDeclared) {
  for (const Kind kind : kKinds) {
    double mean = 0, variance = 0;
    Random random(static_cast<std::uint64_t>(kind) + 77);
    for (int i = 0; i < 1000; ++i) {
      const Operands operands = make_operands(kind, false, 512, random);
      TermSums sums;
      for (std::size_t k = 0; k < operands.a.size(); ++k) sums.add(operands.term(k));
      const float got = unit_sum(operands, {.unit = SumUnit::sm90_bf16});
      mean += std::copysign(1.0, sums.sum) * (got - sums.sum);
      const double sigma = sum_error(512, sums.sum, sums.magnitudes, sums.squares, {}).sigma;
      variance += sigma * sigma;
    }
    EXPECT_LT(mean, -5 * std::sqrt(variance)) << static_cast<int>(kind);
  }
}

// Equal terms lose equal parts, so only the worst case holds.
TEST(MatrixError, WorstCaseHoldsForEqualTermsAndSortedOnes) {
  for (const Declared& declared : units()) {
    const bool fp8 = declared.numerics.unit == SumUnit::sm90_fp8;
    Random random(5);
    Row row;
    row.expected.structured = true;
    for (int i = 0; i < kSumsPerRow; ++i) {
      Operands operands = make_operands(i % 2 ? Kind::equal : Kind::mixed, fp8, 512, random);
      operands.reorder([](double t) { return t; });
      row.add(operands, declared.numerics);
    }
    tests::Margins margins;
    margins.add(row.expected, row.got);
    margins.expect_honest(declared.name);
  }
}

}  // namespace matrix_error_test
}  // namespace plumb::reference
