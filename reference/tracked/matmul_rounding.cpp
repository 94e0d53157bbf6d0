// SPDX-License-Identifier: Apache-2.0
#include "reference/tracked/matmul_rounding.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "reference/dot_error.h"
#include "reference/rounding.h"

namespace plumb::reference {

namespace {

constexpr int kBitsF32 = 24, kBitsBf16 = 8;
// Lowest exponent of doubles; subnormal doubles are treated as having it.
constexpr int kLowestExponent = -1023;

// 2^exponent, clamped to the range of doubles. The clamped values are far below or above all sums.
double place_value(int exponent) {
  const int field = std::clamp(exponent - kLowestExponent, 1, 2046);
  return std::bit_cast<double>(static_cast<std::uint64_t>(field) << 52);
}

int width_of(const std::vector<LineBits>& lines) {
  int width = 0;
  for (const LineBits& line : lines) width = std::max(width, line.width());
  return width;
}

// std::ilogb of a finite number other than 0.
int exponent_of(double x) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 2047) + kLowestExponent;
}

// Limits the losses of a unit if one term is larger than all others together. M and Q are the sums
// of the magnitudes and of the squares of n terms. The largest term L is at most sqrt(Q). The
// squares of the others add up to at most (M - L)^2, so L is at least (M + sqrt(2 Q - M^2)) / 2.
//
// A term loses at most its own size, so the squares of all losses add up to at most M - L times the
// last place of L. Their signs agree no more than those of the others, whose sum is the total minus
// L. Without this limit the bias of such sums was 100 times their mean error.
//
// A unit does not normalise subnormal operands, so the last place is known only if L has none.
// `highest`: exponent of the largest operand.
void limit_losses_of_others(const TermSums& sums, double n, const MatrixUnit& unit, int highest,
                            MatrixTerms& known) {
  // M and Q may be too large by this share, see SumsOfTerms.
  const double inexact = 4 * (n + 8) * kUnitF32;
  const double apart = 2 * sums.squares - square(sums.magnitudes);
  if (!(apart > 0)) return;
  const double most = std::sqrt(sums.squares), total = std::abs(sums.sum);
  const double least = std::min(most, (sums.magnitudes + std::sqrt(apart)) / 2);
  if (!(least > place_value(unit.least_exponent + highest + 1))) return;
  const double others = (1 + inexact) * sums.magnitudes - least;
  constexpr double kWhole = 8;  // terms of one last place count as lost
  known.cut = std::min(known.cut, kWhole * others / (n * place_value(-unit.kept) * most));
  const double net = std::max(total - least, most - total);
  const double one_sign = net / std::max(others + least - most, net);
  known.net = std::min(known.net, known.cut * std::max(one_sign, 1 / std::sqrt(n)));
}

// A unit does not normalise subnormal operands: a product with one counts with an exponent above
// its own, up to this size. 0 if neither line has one.
double size_of_subnormal(const LineBits& a, const LineBits& b, const MatrixUnit& unit) {
  const auto with = [&](const LineBits& of, const LineBits& other) {
    return of.lowest() < unit.least_exponent
               ? place_value(unit.least_exponent + other.highest() + 1)
               : 0;
  };
  return std::max(with(a, b), with(b, a));
}

// What a term or a sum loses is proportional to the partial sum at its place, and partial sums are
// large in some orders. sigma holds for a mean order. This factor multiplies it for unlucky orders.
// Units that align terms to the place of the sum lose a part of nearly every term, so the order
// matters more for them, and most if all chains together have two or three instructions: then one
// partial sum decides. The factors were found with the emulated units: with these, none of 6.3 10^7
// sums in random order exceeds its bound, and with 1 for fp8 and 1.3 for the others it was 1 of
// 10^6.
double unlucky_order(const MatrixUnit& unit, double instructions) {
  if (unit.kept >= unit.bits || instructions == 1) return 1.3;
  return instructions < 4 ? 2.6 : 1.95;
}

}  // namespace

void LineBits::add_exact(const double* numbers, std::int64_t count, std::int64_t step) {
  int least = finest_, most = -4096, longest = longest_;
  for (std::int64_t i = 0; i < count; ++i) {
    const double number = numbers[i * step];
    if (number == 0 || !std::isfinite(number)) continue;
    const int lowest = lowest_bit(number);
    least = std::min(least, lowest);
    most = std::max(most, lowest);
    const int exponent = exponent_of(number);
    longest = std::max(longest, exponent - lowest + 1);
    highest_ = std::max(highest_, exponent);
    lowest_ = std::min(lowest_, exponent);
    ++ends_[place_of(lowest)];
  }
  add_range(least, most, longest);
  count_ += count;
}

void LineBits::add(double number, double error) {
  if (error == 0 || !std::isfinite(number)) return add_exact(&number, 1, 1);
  // A stored number with an error may have other bits of the same format.
  const bool stored = number != 0 && nearest(Format::bf16, number) == number;
  const int bits = stored ? kBitsBf16 : kBitsF32;
  const int lowest = exponent_of(std::abs(number) + error) + 1 - bits;
  highest_ = std::max(highest_, lowest + bits - 1);
  const double least = std::abs(number) - error;
  lowest_ = std::min(lowest_, least > 0 ? exponent_of(least) : kLeast);
  add_range(lowest, lowest, bits);
  ++ends_[place_of(lowest)];
  ++count_;
}

std::size_t LineBits::place_of(int lowest) {
  return static_cast<std::size_t>(std::clamp(lowest - kLeast, 0, kPlaces - 1));
}

void LineBits::add_range(int least, int most, int longest) {
  finest_ = std::min(finest_, least);
  longest_ = std::max(longest_, std::min(longest, kBitsF32));
  width_ = std::max(width_, longest);
  if (most < least) return;
  first_ = std::min(first_, static_cast<int>(place_of(least)));
  end_ = std::max(end_, static_cast<int>(place_of(most)) + 1);
}

float LineBits::share_at(int place) const {
  if (place < first_ || place >= end_) return 0;
  return static_cast<float>(ends_[static_cast<std::size_t>(place)]) / static_cast<float>(count_);
}

UnitErrorFactors::UnitErrorFactors(std::int64_t terms, const Numerics& how)
    : none_(matrix_error_factors(terms, {0, 0, 0}, how)),
      by_rounding_(matrix_error_factors(terms, {1, 0, 0}, how)),
      by_cut_(matrix_error_factors(terms, {0, 1, 0}, how)) {
  const SumErrorFactors net = matrix_error_factors(terms, {0, 0, 1}, how);
  by_net_ = net.bias;
  by_squared_bias_ = (net.of_squares - none_.of_squares) / square(net.bias);
  by_rounding_.of_squares -= none_.of_squares + by_squared_bias_ * square(by_rounding_.bias);
  by_rounding_.of_total -= none_.of_total;
  by_cut_.of_squares -= none_.of_squares;
  by_cut_.of_total -= none_.of_total;
}

SumErrorFactors UnitErrorFactors::of(const MatrixTerms& known) const {
  const double bias = known.rounding * by_rounding_.bias + known.net * by_net_;
  return {.of_squares = none_.of_squares + known.rounding * by_rounding_.of_squares +
                        known.cut * by_cut_.of_squares + by_squared_bias_ * square(bias),
          .of_total = none_.of_total + known.rounding * by_rounding_.of_total +
                      known.cut * by_cut_.of_total,
          .of_magnitudes = none_.of_magnitudes,
          .bias = bias};
}

MatmulRounding::MatmulRounding(std::int64_t terms, const Numerics& how, TermOrder order,
                               std::vector<LineBits> rows, std::vector<LineBits> columns)
    : terms_(terms),
      how_(how),
      rows_(std::move(rows)),
      columns_(std::move(columns)),
      place_(unit_roundoff(how.accumulator)) {
  if (terms < 1) return;
  if (how.unit != SumUnit::fp32) {
    unit_ = matrix_unit(how);
    of_unit_ = UnitErrorFactors(terms, how);
    instructions_ = std::ceil(static_cast<double>(terms) / unit_.step);
    unlucky_ = unlucky_order(unit_, instructions_);
    place_ = std::ldexp(1.0, -std::min(unit_.kept, unit_.bits - 1));
    set_shares();
    return;
  }
  place_exponent_ = exponent_of(2 * place_);
  set_shares();
  if (terms == 1) return;
  none_round_ = dot_error_factors(0, terms, how, order == TermOrder::any);
  const SumErrorFactors all = dot_error_factors(1, terms, how, order == TermOrder::any);
  by_share_ = {all.of_squares - none_round_.of_squares, all.of_total - none_round_.of_total, 0, 0};
}

void MatmulRounding::set_shares() {
  const auto range_of = [](const std::vector<LineBits>& lines) {
    std::pair range(LineBits::kPlaces, 0);
    for (const LineBits& line : lines) {
      range.first = std::min(range.first, line.first_place());
      range.second = std::max(range.second, line.places_end());
    }
    range.second = std::max(range.first, range.second);
    return range;
  };
  const auto [first_row, end_row] = range_of(rows_);
  const auto [first_column, end_column] = range_of(columns_);
  first_of_rows_ = first_row;
  width_of_rows_ = end_row - first_row;
  first_below_ = first_column - width_of_rows_;
  width_below_ = end_column - first_column + 1 + 2 * width_of_rows_;
  for (const LineBits& row : rows_) {
    for (int place = end_row; place-- > first_row;) shares_.push_back(row.share_at(place));
  }
  const int width = width_of(rows_) + width_of(columns_);
  for (const LineBits& column : columns_) {
    float below = 0, far_below = 0;
    for (int place = first_below_; place < first_below_ + width_below_; ++place) {
      below_.push_back(std::max(0.0F, below + far_below));
      below += column.share_at(place);
      if (how_.unit == SumUnit::fp32) continue;
      const float whole = column.share_at(place - width);
      below -= whole;
      far_below = (far_below + whole) / 2;
    }
  }
}

double MatmulRounding::share_below(int place, std::size_t row, std::size_t column) const {
  if (width_of_rows_ == 0) return 0;
  // If the lowest bit of a number of the row is at the last place of the row, its product has bits
  // below `place` only if the lowest bit of the column's number is below `behind`.
  const int behind = place - 2 * LineBits::kLeast - (first_of_rows_ + width_of_rows_ - 1);
  const int from = std::clamp(behind - first_below_, 0, width_below_ - width_of_rows_);
  const auto width = static_cast<std::size_t>(width_of_rows_);
  const Eigen::Map<const Eigen::VectorXf> shares(&shares_[row * width], width_of_rows_);
  const float* const below = &below_[column * static_cast<std::size_t>(width_below_)];
  return shares.dot(Eigen::Map<const Eigen::VectorXf>(below + from, width_of_rows_));
}

MatrixError MatmulRounding::of(std::size_t row, std::size_t column, const TermSums& sums,
                               double most) const {
  const LineBits &a = rows_[row], &b = columns_[column];
  const double magnitudes = sums.magnitudes + most;
  const double subnormal = how_.unit == SumUnit::fp32 ? 0 : size_of_subnormal(a, b, unit_);
  // Every partial sum is a multiple of this place and has few enough bits, so nothing is rounded.
  if (!(std::max(magnitudes, subnormal) * place_ > place_value(a.finest() + b.finest()))) return {};
  MatrixError error = how_.unit == SumUnit::fp32
                          ? of_fp32(row, column, sums, magnitudes)
                          : of_unit(row, column, sums, magnitudes, subnormal);
  const auto n = static_cast<double>(terms_);
  constexpr double kTiny = 0x1p-90;  // products may be flushed to zero
  if (magnitudes < n * kTiny) {
    error.sigma += n * kLeastNormalF32 * kUniformSigma;
    error.worst += n * kLeastNormalF32;
  }
  return error;
}

// An addition rounds if a product has bits below the last place of the sum. This is the last place
// of a sum twice as large, because partial sums reach the next binade, where products of short
// numbers may lose bits all at once. Each such product leaves a bit in the sum that may be rounded
// away later. If such additions are rare, kCertain of them count as certain, because 6 sigma of
// rare events would be less than one rounding. 1 of 1.8 10^7 sums of FP8 products exceeded the
// bound, by 0.06. With kCertain = 1 it was 4, by up to 0.24, and 76, by up to 0.73, with the place
// of the sum itself.
MatrixError MatmulRounding::of_fp32(std::size_t row, std::size_t column, const TermSums& sums,
                                    double magnitudes) const {
  constexpr double kCertain = 2;
  const double total = square(sums.sum), squared_size = std::max(total, sums.squares);
  double share = 1;
  if (squared_size > 0 && squared_size < kInfinity) {
    const int last_place = place_exponent_ + (exponent_of(squared_size) >> 1);  // rounds down
    const double below = share_below(last_place + 1, row, column);
    share = std::min(1.0, kCertain / static_cast<double>(terms_) + 2 * below);
  }
  const bool exact_products =
      how_.product == Format::f64 || rows_[row].longest() + columns_[column].longest() <= kBitsF32;
  const double product = exact_products ? 0 : kUnitF32;
  const double of_squares = none_round_.of_squares + share * by_share_.of_squares;
  const double of_total = none_round_.of_total + share * by_share_.of_total;
  const double of_sum =
      std::max(of_squares * sums.squares + of_total * total,
               share * square(kUniformSigma * place_) * sums.squared_partial_sums);
  MatrixError error;
  error.sigma = std::sqrt(of_sum + square(kUniformSigma * product) * sums.squares);
  error.worst = (none_round_.of_magnitudes + product) * magnitudes;
  return error;
}

// Adds what products and partial sums lose if each is cut at the last place of a product of this
// size, which none of them has.
void MatmulRounding::add_losses_to(double size, const TermSums& sums, MatrixError& error) const {
  const double place = size * place_value(-unit_.kept), n = static_cast<double>(terms_);
  const double additions = n + std::ceil(n / unit_.step);
  const double bias = place / 2 * additions * std::min(1.0, std::abs(sums.sum) / sums.magnitudes);
  error.sigma = std::sqrt(square(error.sigma) + additions * square(place) / 3) + bias / 6;
  error.bias += bias;
  error.worst += place * additions;
}

// Takes the shares of the products that lose bits from the positions of their bits. The share of
// the rounding instructions is that of matrix_terms. In random order the mean square partial sum in
// front of an instruction is S^2 (m - 1) (2 m - 1) / 6 m^2 + Q (m^2 - 1) / 6 m^2
// (matrix_error.cpp), and a product of the instruction itself may be larger. Where a partial sum is
// larger than the mean one, products are lost that end just above the mean one's place: kLarge,
// found with the emulated units, moves the place. A sorted sum is near its end from the beginning,
// so the bias takes the place of the whole sum.
MatrixTerms MatmulRounding::terms_of_unit(std::size_t row, std::size_t column,
                                          const TermSums& sums) const {
  constexpr double kLargest = 0.5;  // as in matrix_error.cpp
  constexpr double kLarge = 1.5;
  const double m = instructions_, size = std::max(std::abs(sums.sum), std::sqrt(sums.squares));
  MatrixTerms known =
      matrix_terms(terms_, sums, rows_[row].longest() + columns_[column].longest(), how_);
  if (!(size < kInfinity)) return known;
  const double in_front = square(sums.sum) * (m - 1) * (2 * m - 1) / (6 * square(m)) +
                          sums.squares * ((square(m) - 1) / (6 * square(m)) + kLargest / m);
  const auto lost_at = [&](double sum) {
    return double{share_below(exponent_of(sum) - unit_.kept, row, column)};
  };
  known.cut = lost_at(kLarge * std::sqrt(in_front));
  const double lost = lost_at(size), one_sign = std::min(1.0, size / sums.magnitudes);
  known.net = lost * one_sign * std::max(lost / 2, square(one_sign));
  return known;
}

MatrixError MatmulRounding::of_unit(std::size_t row, std::size_t column, const TermSums& sums,
                                    double magnitudes, double subnormal) const {
  if (!(sums.squares > 0)) {
    const double worst = of_unit_.of({}).of_magnitudes * magnitudes;
    return {worst * kUniformSigma, 0, worst};
  }
  const auto n = static_cast<double>(terms_);
  MatrixTerms known = terms_of_unit(row, column, sums);
  if (unit_.bits < 20) {
    const int highest = std::max(rows_[row].highest(), columns_[column].highest());
    limit_losses_of_others(sums, n, unit_, highest, known);
  }
  // One loss counts as certain, because 6 sigma of rare events would be less than one loss.
  known.rounding = std::min(1.0, known.rounding + 1 / std::max(1.0, n / unit_.step));
  known.cut = std::min(1.0, known.cut + 1 / n);
  const SumErrorFactors factors = of_unit_.of(known);
  const double bias = factors.bias * std::abs(sums.sum);
  const double variance = factors.of_squares * sums.squares + factors.of_total * square(sums.sum);
  const double sigma = unlucky_ * std::sqrt(variance);
  MatrixError error{sigma + bias / 6, bias, factors.of_magnitudes * magnitudes};
  // The largest product is at least sums.squares / sums.magnitudes.
  if (subnormal > sums.squares / sums.magnitudes) add_losses_to(subnormal, sums, error);
  return error;
}

}  // namespace plumb::reference
