// SPDX-License-Identifier: Apache-2.0
#include "reference/matrix_unit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace plumb::reference {

namespace {

constexpr int kFraction = 23;  // fraction bits of an fp32 significand
constexpr int kNoExponent = -100000;

// The number significand * 2^(exponent - fraction bits).
struct Scaled {
  std::int64_t significand = 0;
  int exponent = kNoExponent;  // of zero: smaller than all other exponents
};

Scaled scaled(float x, int least_exponent) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  std::int64_t significand = bits & 0x7fffff;
  int exponent = static_cast<int>(bits >> kFraction & 0xff) - 127;
  if (exponent == -127) {
    exponent = -126;
  } else {
    significand |= 0x800000;
  }
  if (significand == 0) return {};
  if (exponent < least_exponent) {
    significand >>= std::min(least_exponent - exponent, 63);
    exponent = least_exponent;
  }
  return {std::signbit(x) ? -significand : significand, exponent};
}

Scaled product(float a, float b, int least_exponent) {
  const Scaled x = scaled(a, least_exponent), y = scaled(b, least_exponent);
  if (x.significand == 0 || y.significand == 0) return {};
  return {x.significand * y.significand, x.exponent + y.exponent};
}

// x / 2^places, rounded towards zero.
std::int64_t shifted_right(std::int64_t x, int places) {
  if (places <= 0) return x * (std::int64_t{1} << -places);
  return places > 62 ? 0 : x / (std::int64_t{1} << places);
}

// significand * 2^exponent, truncated to `bits` bits and to the smallest subnormal of fp32.
float cut(std::int64_t significand, int exponent, int bits) {
  constexpr int kLeastPlace = -149;
  const auto size = static_cast<std::uint64_t>(std::abs(significand));
  const int width = 64 - std::countl_zero(size);
  const int dropped = std::max({0, width - bits, kLeastPlace - exponent});
  const double kept = static_cast<double>(shifted_right(significand, dropped));
  return static_cast<float>(std::ldexp(kept, exponent + dropped));
}

// NaN or infinity if an operand or the accumulator is NaN or infinite; otherwise a finite number.
float special(const float* a, const float* b, std::int64_t count, float accumulator) {
  float sum = accumulator * 0;
  if (!std::isfinite(accumulator)) sum = accumulator;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) sum += a[i] * b[i];
  }
  return sum;
}

}  // namespace

float matrix_step(const MatrixUnit& unit, const float* a, const float* b, std::int64_t count,
                  float accumulator) {
  if (const float x = special(a, b, count, accumulator); !std::isfinite(x)) return x;
  const Scaled start = scaled(accumulator, -126);
  int top = start.exponent;
  for (std::int64_t i = 0; i < count; ++i) {
    top = std::max(top, product(a[i], b[i], unit.least_exponent).exponent);
  }
  if (top == kNoExponent) return 0;
  std::int64_t sum = shifted_right(start.significand, kFraction - unit.kept + top - start.exponent);
  for (std::int64_t i = 0; i < count; ++i) {
    const Scaled term = product(a[i], b[i], unit.least_exponent);
    sum += shifted_right(term.significand, 2 * kFraction - unit.kept + top - term.exponent);
  }
  return cut(sum, top - unit.kept, unit.bits);
}

float matrix_sum(const MatrixUnit& unit, const float* a, const float* b, std::int64_t terms,
                 float accumulator) {
  for (std::int64_t i = 0; i < terms; i += unit.step) {
    const std::int64_t count = std::min<std::int64_t>(unit.step, terms - i);
    accumulator = matrix_step(unit, a + i, b + i, count, accumulator);
  }
  return accumulator;
}

}  // namespace plumb::reference
