// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/matmul_rounding.h"

#include <algorithm>
#include <cmath>

#include "reference/dot_error.h"
#include "reference/rounding.h"

namespace plumb::reference {

namespace {

constexpr int kBitsF32 = 24, kBitsBf16 = 8;

SumErrorFactors between(const SumErrorFactors& none, const SumErrorFactors& all, double share) {
  return {std::lerp(none.of_squares, all.of_squares, share),
          std::lerp(none.of_total, all.of_total, share), all.of_magnitudes, 0};
}

}  // namespace

void LineBits::add(double number, double error) {
  ++count_;
  if ((number == 0 && error == 0) || !std::isfinite(number)) return;
  int lowest = number == 0 ? kLeast : lowest_bit(number);
  if (error != 0) {
    // A number that is stored with an error has other bits of the same format.
    const bool stored = number != 0 && nearest(Format::bf16, number) == number;
    lowest = number == 0 ? kLeast : std::ilogb(number) + 1 - (stored ? kBitsBf16 : kBitsF32);
  }
  finest_ = std::min(finest_, lowest);
  const int bits = number == 0 ? kBitsF32 : std::ilogb(number) - lowest + 1;
  longest_ = std::max(longest_, std::min(bits, kBitsF32));
  ++shares_[static_cast<std::size_t>(std::clamp(lowest - kLeast, 0, kPlaces - 1))];
}

void LineBits::finish() {
  for (std::size_t p = 0; p < shares_.size(); ++p) {
    shares_[p] /= std::max(count_, 1.0);
    below_[p + 1] = below_[p] + shares_[p];
    if (shares_[p] != 0) found_.emplace_back(static_cast<int>(p) + kLeast, shares_[p]);
  }
}

double LineBits::share_below(int place, const LineBits& other) const {
  double share = 0;
  for (const auto& [lowest, part] : found_) {
    const int limit = std::clamp(place - lowest - kLeast, 0, kPlaces);
    share += part * other.below_[static_cast<std::size_t>(limit)];
  }
  return share;
}

MatmulRounding::MatmulRounding(std::int64_t terms, const Numerics& how)
    : terms_(terms), how_(how), place_(unit_roundoff(how.accumulator)) {
  if (terms < 1) return;
  if (how.unit != SumUnit::fp32) {
    const MatrixUnit unit = matrix_unit(how);
    place_ = std::ldexp(1.0, -std::min(unit.kept, unit.bits - 1));
  } else if (terms > 1) {
    all_round_ = dot_error_factors(1, terms, how);
    none_round_ = dot_error_factors(0, terms, how);
  }
}

MatrixError MatmulRounding::of(const LineBits& a, const LineBits& b, const TermSums& sums,
                               double most) const {
  const double magnitudes = sums.magnitudes + most;
  // Every partial sum is a multiple of this place and short enough: nothing is rounded.
  if (!(magnitudes * place_ > std::ldexp(1.0, std::max(a.finest() + b.finest(), -2000)))) return {};
  MatrixError error = how_.unit == SumUnit::fp32 ? of_fp32(a, b, sums, magnitudes)
                                                 : of_unit(a, b, sums, magnitudes);
  const auto n = static_cast<double>(terms_);
  constexpr double kTiny = 0x1p-90;  // products may be flushed to zero
  if (magnitudes < n * kTiny) {
    error.sigma += n * kLeastNormalF32 * kUniformSigma;
    error.worst += n * kLeastNormalF32;
  }
  return error;
}

// An addition rounds if a product ends below the last place of the sum. Each leaves the sum with a
// bit that goes when the sum reaches the next binade. Where such additions are rare, some count as
// certain: six deviations of what hardly ever happens would be less than it. Of 10^6 sums of FP8
// products, 10 were beyond a bound with one such addition, by up to a quarter.
MatrixError MatmulRounding::of_fp32(const LineBits& a, const LineBits& b, const TermSums& sums,
                                    double magnitudes) const {
  constexpr double kCertain = 4;
  const double size = std::max(std::abs(sums.sum), std::sqrt(sums.squares));
  double share = 1;
  if (size > 0 && std::isfinite(size)) {
    const int last_place = std::ilogb(2 * place_) + std::ilogb(size);
    share =
        std::min(1.0, kCertain / static_cast<double>(terms_) + 2 * a.share_below(last_place, b));
  }
  const SumErrorFactors factors = between(none_round_, all_round_, share);
  const bool exact_products = how_.product == Format::f64 || a.longest() + b.longest() <= kBitsF32;
  const double product = exact_products ? 0 : kUnitF32;
  MatrixError error;
  error.sigma = std::sqrt((factors.of_squares + square(kUniformSigma * product)) * sums.squares +
                          factors.of_total * square(sums.sum));
  error.worst = (factors.of_magnitudes + product) * magnitudes;
  return error;
}

MatrixError MatmulRounding::of_unit(const LineBits& a, const LineBits& b, const TermSums& sums,
                                    double magnitudes) const {
  if (!(sums.squares > 0)) {
    const double worst = matrix_error_factors(terms_, {}, how_).of_magnitudes * magnitudes;
    return {worst * kUniformSigma, 0, worst};
  }
  const auto n = static_cast<double>(terms_);
  MatrixTerms known = matrix_terms(terms_, sums, a.longest() + b.longest(), how_);
  // Six deviations of what hardly ever happens would be less than one such loss.
  known.rounding = std::min(1.0, known.rounding + 1 / std::max(1.0, n / matrix_unit(how_).step));
  known.cut = std::min(1.0, known.cut + 1 / n);
  const SumErrorFactors factors = matrix_error_factors(terms_, known, how_);
  const double bias = factors.bias * std::abs(sums.sum);
  // What a sum loses follows its partial sums, which are large in some orders (see bound.cpp). Of
  // 10^7 sums in 24 bits, 3 were beyond six deviations, by up to 0.3. Units of few bits lose some
  // of nearly every product instead: 1 of 10^7, by 0.03.
  const double unlucky = matrix_unit(how_).bits < 20 ? 1 : 1.7;
  const double variance = factors.of_squares * sums.squares + factors.of_total * square(sums.sum);
  const double sigma = std::sqrt(unlucky * variance);
  return {sigma + bias / 6, bias, factors.of_magnitudes * magnitudes};
}

}  // namespace plumb::reference
