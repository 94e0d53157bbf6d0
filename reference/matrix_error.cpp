// SPDX-License-Identifier: Apache-2.0
#include "reference/matrix_error.h"

#include <algorithm>
#include <cmath>

namespace plumb::reference {

namespace {

// Mean of 2^e / |x| and of its square, for x uniform in log x, with 2^e the largest power of two
// that is at most |x|.
constexpr double kMeanPlace = 0.72, kMeanSquarePlace = 0.54;

// Square of the largest product of an instruction, as a fraction of the sum of its squares.
constexpr double kLargest = 0.5;

}  // namespace

MatrixUnit matrix_unit(const Numerics& numerics) {
  MatrixUnit unit = numerics.unit == SumUnit::sm90_bf16  ? kSm90Bf16
                    : numerics.unit == SumUnit::sm90_fp8 ? kSm90Fp8
                                                         : kTwentyFourBits;
  if (numerics.step > 0) unit.step = numerics.step;
  return unit;
}

// Let S be the sum, Q the sum of squares and m the number of instructions. In random order, the
// partial sum after j instructions has the mean j / m S and the variance j (m - j) / m^2 Q. The
// squares of all partial sums add up to
//   S^2 (m + 1)(2 m + 1) / (6 m) + Q (m^2 - 1) / (6 m).
// With C chains, each has 1 / C of S and of Q on average, and the sum of a chain has the variance Q
// (C - 1) / C^2.
//
// An instruction truncates its sum. The loss is uniform between 0 and 1 last place: its mean is
// half a place, its variance 1/12 of a squared place. A last place is proportional to the partial
// sum. In random order the partial sums add up to (m + 1) / 2 S, with a variance of Q (m^2 - 1) /
// 12. If large terms come first, the partial sums are near S from the beginning and add up to m S,
// so the bias allows m S. A product loses up to one last place of the largest number of its
// instruction, which is a product or the partial sum in front of it. The squares of the m partial
// sums in front of the instructions add up to S^2 less than those behind.
SumErrorFactors matrix_error_factors(std::int64_t terms, const MatrixTerms& known,
                                     const Numerics& numerics) {
  if (terms < 1) return {};
  const MatrixUnit unit = matrix_unit(numerics);
  const auto n = static_cast<double>(terms);
  const double chains = std::clamp<double>(numerics.chains, 1, n);
  const double length = std::ceil(n / chains);  // terms of the longest chain
  const double together = std::min<double>(unit.step, length);
  const double m = std::ceil(length / unit.step);
  const double sum_place = std::ldexp(1.0, 1 - unit.bits), place = std::ldexp(1.0, -unit.kept);
  const double total = (m + 1) * (2 * m + 1) / (6 * m), bridge = (square(m) - 1) / (6 * m);
  const double sums_of_total = total / chains, sums_of_squares = bridge + total * (1 - 1 / chains);
  const double in_front_of_total = (total - 1) / chains;
  const double in_front_of_squares = bridge + (total - 1) * (1 - 1 / chains);

  const double of_sum = kMeanSquarePlace * known.rounding * square(sum_place) / 12;
  // Terms have both signs, so the whole mean square loss of a term counts as variance: 1/4 of a
  // squared place. It would be 1/3 if products had many bits below the place, but they have few.
  const double of_terms = kMeanSquarePlace * known.cut * (together + 1) * square(place) / 4;
  const double mean =
      kMeanPlace * (known.rounding * sum_place / 2 + known.net * together * place * 0.4);
  const double levels = std::ceil(std::log2(chains));
  const double joining = square(kUnitF32) / 3 * levels;
  return {.of_squares = of_sum * sums_of_squares + of_terms * (in_front_of_squares + kLargest) +
                        square(mean) * (square(m) - 1) / 12 + joining,
          .of_total = of_sum * sums_of_total + of_terms * in_front_of_total + joining,
          .of_magnitudes = m * ((together + 1) * place + sum_place) + kUnitF32 * levels,
          .bias = mean * m};
}

// A product of b bits loses bits if the largest number of its instruction is more than 2^(kept + 1
// - b) times as large. The sum loses bits if it is more than 2^(bits - b) times as large as a
// product. The share of such small products is taken as proportional to the limit: 1.5 % of the
// products are below 1 % of the mean magnitude.
//
// Some units truncate terms at the last place of the sum. Then the sum loses bits only when it
// crosses a power of two. m partial sums of random terms do so about sqrt(m) times.
//
// Products that lose bits are small. Their signs agree with the sign of the sum less often than
// those of large products, unless all terms have one sign.
MatrixTerms matrix_terms(std::int64_t terms, const TermSums& sums, int product_bits,
                         const Numerics& numerics) {
  constexpr double kNearZero = 1.5;
  const MatrixUnit unit = matrix_unit(numerics);
  const auto n = static_cast<double>(terms);
  const double m = std::max(1.0, n / unit.step);
  const double on_the_way =
      std::sqrt(square(sums.sum) / 3 + sums.squares * (1.0 / 6 + kLargest / m));
  const double in_terms = on_the_way / (sums.magnitudes / n);
  const auto share = [&](int places, double products) {
    return std::min(1.0, kNearZero * in_terms * products * std::ldexp(1.0, -places));
  };
  MatrixTerms known;
  known.rounding =
      unit.kept < unit.bits ? 1 / std::sqrt(m) : share(unit.bits - product_bits, unit.step);
  known.cut = share(unit.kept + 1 - product_bits, 1);
  const double size = std::max(std::abs(sums.sum), std::sqrt(sums.squares));
  const double one_sign = std::min(1.0, size / sums.magnitudes);
  known.net = known.cut * one_sign * std::max(known.cut / 2, square(one_sign));
  return known;
}

}  // namespace plumb::reference
