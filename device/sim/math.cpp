// SPDX-License-Identifier: Apache-2.0
//
// Short series in double; the remainders are below 1e-15 relative.
#include "device/sim/math.h"

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

}  // namespace

float exp2_rounded(float x) {
  if (x != x) return kNan;
  if (x >= 128.0F) return kInfinity;
  if (x < -151.0F) return 0.0F;
  const int whole = static_cast<int>(x + (x < 0.0F ? -0.5F : 0.5F));
  const double y = (static_cast<double>(x) - whole) * kLn2;
  // e^y by its series: |y| < 0.35, so that the first term left out, y^14 / 14!, is below 5e-18.
  double sum = 1.0;
  for (int n = 13; n >= 1; --n) sum = 1.0 + sum * y / n;
  return static_cast<float>(sum * power_of_two(whole));
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
  // log m = 2 artanh(s), |s| < 0.172: the first term left out, s^25 / 25, is below 4e-21.
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double sum = 1.0 / 23;
  for (int n = 21; n >= 1; n -= 2) sum = 1.0 / n + sum * s2;
  return static_cast<float>(exponent + kTwoOverLn2 * s * sum);
}

float rsqrt_rounded(float x) {
  if (x != x || x < 0.0F) return kNan;
  if (x == 0.0F) return std::copysign(kInfinity, x);
  if (x == kInfinity) return 0.0F;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}

}  // namespace plumb::device::sim
