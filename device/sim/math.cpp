// SPDX-License-Identifier: Apache-2.0
//
// Short series in double, whose relative truncation error is below 1e-15.
#include "device/sim/math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace plumb::device::sim {

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kLn2 = 0.69314718055994530942;
constexpr double kTwoOverLn2 = 2.88539008177792681472;

// 2^exponent, for exponents of normal doubles.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// e^y by its series, for |y| < 0.35: the first omitted term, y^14 / 14!, is below 5e-18. For speed
// in three independent pieces, and without a division.
double exp_series(double y) {
  constexpr double c2 = 1.0 / 2, c3 = c2 / 3, c4 = c3 / 4, c5 = c4 / 5, c6 = c5 / 6, c7 = c6 / 7,
                   c8 = c7 / 8, c9 = c8 / 9, c10 = c9 / 10, c11 = c10 / 11, c12 = c11 / 12,
                   c13 = c12 / 13;
  const double y2 = y * y, y4 = y2 * y2;
  const double low = (c2 + c3 * y) + y2 * (c4 + c5 * y);
  const double middle = (c6 + c7 * y) + y2 * (c8 + c9 * y);
  const double high = (c10 + c11 * y) + y2 * (c12 + c13 * y);
  return 1.0 + (y + y2 * (low + y4 * (middle + y4 * high)));
}

// 1 / 23, 1 / 21, ..., 1 / 1
constexpr std::array<double, 12> kOneOverOdd = [] {
  std::array<double, 12> values{};
  for (int i = 0; i < 12; ++i) values[static_cast<std::size_t>(i)] = 1.0 / (23 - 2 * i);
  return values;
}();

}  // namespace

float exp2_rounded(float x) {
  if (x != x) return kNan;
  if (x >= 128.0F) return kInfinity;
  if (x < -151.0F) return 0.0F;
  const int whole = static_cast<int>(x + (x < 0.0F ? -0.5F : 0.5F));
  const double y = (static_cast<double>(x) - whole) * kLn2;
  return static_cast<float>(exp_series(y) * power_of_two(whole));
}

float log2_rounded(float x) {
  if (x != x || x < 0.0F) return kNan;
  if (x == 0.0F) return -kInfinity;
  if (x == kInfinity) return kInfinity;
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFU) | 0x3FF0000000000000U);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++exponent;
  }
  // log m = 2 artanh(s), |s| < 0.172: the first omitted term, s^25 / 25, is below 4e-21.
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double sum = 0;
  for (const double one_over_n : kOneOverOdd) sum = one_over_n + sum * s2;
  return static_cast<float>(exponent + kTwoOverLn2 * s * sum);
}

float rsqrt_rounded(float x) {
  if (x != x || x < 0.0F) return kNan;
  if (x == 0.0F) return std::copysign(kInfinity, x);
  if (x == kInfinity) return 0.0F;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}

}  // namespace plumb::device::sim
