// SPDX-License-Identifier: Apache-2.0
#include "reference/exp_array.h"

#include <bit>
#include <numbers>

namespace plumb::reference {

namespace {

// ln 2 as the sum of two numbers. The first has 21 trailing zero bits, so its product with k is
// exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
// Adding this constant leaves the nearest integer in the low bits of the mantissa.
constexpr double kRoundToInteger = 0x1.8p52;

// exp(r) for |r| <= ln(2) / 2: Taylor series to r^13, whose remainder is below 5e-18.
double exp_near_zero(double r) {
  double sum = 1.0 / 6227020800;
  sum = sum * r + 1.0 / 479001600;
  sum = sum * r + 1.0 / 39916800;
  sum = sum * r + 1.0 / 3628800;
  sum = sum * r + 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 0.5;
  sum = sum * r + 1;
  return sum * r + 1;
}

}  // namespace

void exp_in_place(double* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double argument = x[i] < -700 ? -700 : x[i];
    const double shifted = argument * std::numbers::log2e + kRoundToInteger;
    const double k = shifted - kRoundToInteger;
    const double r = (argument - k * kLn2High) - k * kLn2Low;
    const auto exponent = std::bit_cast<std::uint64_t>(shifted) << 52;  // k, in the exponent field
    const auto scale = std::bit_cast<double>(exponent + (std::uint64_t{1023} << 52));
    x[i] = exp_near_zero(r) * scale;
  }
}

}  // namespace plumb::reference
