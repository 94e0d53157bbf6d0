// SPDX-License-Identifier: Apache-2.0
#include "reference/rounding_bias.h"

#include <algorithm>
#include <cmath>

#include "reference/four_doubles.h"

namespace plumb::reference {

namespace {

// Errors of rounding terms * scale to integers: the sum of the errors except those of ties, and the
// sum of the sizes (1/2 each) of the errors of ties.
struct LeftOver {
  double sum = 0, ties = 0;
};

PLUMB_FOR_ANY_TARGET void add_left_over(const double* terms, double scale, Four& sum, Four& ties) {
  constexpr double kToInteger = 0x1.8p52;  // adding, then subtracting it rounds to an integer
  constexpr double kBelowTie = 0.5 - 0x1p-54;
  Four some, size;
  load(terms, some);
  const Four steps = some * scale;
  const Four error = ((steps + kToInteger) - kToInteger) - steps;
  magnitude_of(error, size);
  // The double below 0.5 is 0.5 - 2^-54, so only a tie (size 0.5) exceeds kBelowTie, by 2^-54.
  const Four least = Four{} + kBelowTie;
  const Four is_tie = ((size > least ? size : least) - kBelowTie) * 0x1p54;
  sum += error - error * is_tie;
  ties += is_tie;
}

PLUMB_FOR_ANY_TARGET LeftOver add_all_left_over(const double* terms, std::size_t count,
                                                double scale) {
  Four sum{}, ties{}, other_sum{}, other_ties{};  // two accumulators, shorter dependency chains
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    add_left_over(terms + i, scale, sum, ties);
    add_left_over(terms + i + 4, scale, other_sum, other_ties);
  }
  sum += other_sum;
  ties += other_ties;
  for (; i + 4 <= count; i += 4) add_left_over(terms + i, scale, sum, ties);
  double rest[4] = {};
  std::copy(terms + i, terms + count, rest);
  add_left_over(rest, scale, sum, ties);
  return {(sum[0] + sum[1]) + (sum[2] + sum[3]), (ties[0] + ties[1] + ties[2] + ties[3]) / 2};
}

PLUMB_WIDE_TARGET LeftOver wide_left_over(const double* terms, std::size_t count, double scale) {
  return add_all_left_over(terms, count, scale);
}

LeftOver left_over(const double* terms, std::size_t count, double scale) {
  return has_wide_registers() ? wide_left_over(terms, count, scale)
                              : add_all_left_over(terms, count, scale);
}

// Long sums have much more bias of their own, and a tree of them is not examined.
constexpr double kShortChain = 64;

double bias_of_tree(const double* terms, std::size_t count, double chains, double last,
                    double unit) {
  const auto terms_of_all = static_cast<double>(count);
  if (terms_of_all > kShortChain * chains) return 0;
  double bias = 0;
  double sum = last;
  for (double sums = chains; sums > 1; sums /= 2) {
    sum *= 2;
    const double spacing = 2 * unit * std::ldexp(1.0, std::ilogb(sum));
    const LeftOver left = left_over(terms, count, 1 / spacing);
    bias += sums * (std::abs(left.sum) + left.ties) / terms_of_all * spacing;
  }
  return bias;
}

}  // namespace

RoundingBias rounding_bias(const double* terms, std::size_t count, double chains, double last,
                           double unit) {
  constexpr int kBinades = 4;  // each lower binade has a quarter of the weight
  if (!(last > 0) || !std::isfinite(last)) return {};
  const double added = 1 - chains / static_cast<double>(count);
  RoundingBias bias;
  for (int binade = 0; binade < kBinades; ++binade) {
    const double least = std::ldexp(1.0, std::ilogb(last) - binade);
    const double share = (binade == 0 ? last - least : least) / last;
    const double spacing = 2 * unit * least;
    const LeftOver left = left_over(terms, count, 1 / spacing);
    const double of_all = std::abs(left.sum) + left.ties;
    bias.of_terms += added * share * of_all * spacing;
    if (binade == 0) bias.of_sums = std::min(of_all, chains / 2) * spacing;
  }
  bias.of_tree = bias_of_tree(terms, count, chains, last, unit);
  return bias;
}

}  // namespace plumb::reference
