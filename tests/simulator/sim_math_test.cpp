// SPDX-License-Identifier: Apache-2.0
//
// exp2, log2 and rsqrt of the simulated device, compared with the C library in extended precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "device/sim/math.h"

namespace plumb::device::sim {
namespace sim_math_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

// Error in units of the float's last place.
double ulps(float got, long double exact) {
  int exponent = 0;
  std::frexp(static_cast<double>(exact), &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact)) / ulp;
}

// Largest error over every 997th float from `first` to `last`, which must have the same sign.
template <typename Function, typename Exact>
double worst_ulps(float first, float last, Function function, Exact exact) {
  double worst = 0;
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(first);
       bits <= std::bit_cast<std::uint32_t>(last); bits += 997) {
    const float x = std::bit_cast<float>(bits);
    const double error = ulps(function(x), exact(static_cast<long double>(x)));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

TEST(SimMath, Exp2IsRoundedRight) {
  const auto exact = [](long double x) { return std::exp2(x); };
  EXPECT_LE(worst_ulps(1e-12F, 127.999F, exp2_rounded, exact), 0.500001);
  EXPECT_LE(worst_ulps(-1e-12F, -160.0F, exp2_rounded, exact), 0.500001);
}

// exp2 by Horner's scheme, with which goldens were computed.
float exp2_by_horner(float x) {
  const int whole = static_cast<int>(x + (x < 0.0F ? -0.5F : 0.5F));
  const double y = (static_cast<double>(x) - whole) * 0.69314718055994530942;
  double sum = 1.0;
  for (int n = 13; n >= 1; --n) sum = 1.0 + sum * y / n;
  return static_cast<float>(std::ldexp(sum, whole));
}

// All floats with magnitudes from 2^-26 to 128 agree, negative ones to 151; this test takes every
// 997th.
TEST(SimMath, Exp2HasTheBitsOfHornersScheme) {
  for (const std::uint32_t sign : {0U, 0x80000000U})
    for (std::uint32_t bits = 0x32800000U; bits < (sign != 0 ? 0x43170000U : 0x43000000U);
         bits += 997) {
      const float x = std::bit_cast<float>(sign | bits);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(exp2_rounded(x)),
                std::bit_cast<std::uint32_t>(exp2_by_horner(x)))
          << x;
    }
}

TEST(SimMath, Log2IsRoundedRight) {
  const auto exact = [](long double x) { return std::log2(x); };
  EXPECT_LE(worst_ulps(kSmallest, 3e38F, log2_rounded, exact), 0.500001);
  EXPECT_LE(worst_ulps(0.99F, 1.01F, log2_rounded, exact), 0.500001);
}

TEST(SimMath, RsqrtIsRoundedRight) {
  const auto exact = [](long double x) { return 1 / std::sqrt(x); };
  EXPECT_LE(worst_ulps(kSmallest, 3e38F, rsqrt_rounded, exact), 0.500001);
}

TEST(SimMath, ExactPointsAreExact) {
  for (int e = -149; e < 128; ++e) {
    EXPECT_EQ(exp2_rounded(static_cast<float>(e)), std::ldexp(1.0F, e));
    EXPECT_EQ(log2_rounded(std::ldexp(1.0F, e)), static_cast<float>(e));
  }
  for (int e = -74; e < 64; ++e)
    EXPECT_EQ(rsqrt_rounded(std::ldexp(1.0F, 2 * e)), std::ldexp(1.0F, -e));
}

// FNV-1a hash of the results for every 4999th float.
std::uint64_t digest(float (*function)(float)) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 4999) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    hash = (hash ^ std::bit_cast<std::uint32_t>(function(x))) * 0x100000001B3U;
  }
  return hash;
}

TEST(SimMath, BitsAreTheSameWithEveryCompilerAndMachine) {
  EXPECT_EQ(digest(exp2_rounded), 0x8417A4D314043FAFU);
  EXPECT_EQ(digest(log2_rounded), 0xFCBDFC5F03529F31U);
  EXPECT_EQ(digest(rsqrt_rounded), 0xAFB8431364050427U);
}

TEST(SimMath, SpecialValues) {
  EXPECT_EQ(exp2_rounded(kInfinity), kInfinity);
  EXPECT_EQ(exp2_rounded(-kInfinity), 0.0F);
  EXPECT_EQ(exp2_rounded(128.0F), kInfinity);
  EXPECT_EQ(exp2_rounded(-150.0F), 0.0F);
  EXPECT_EQ(exp2_rounded(-149.99F), kSmallest);
  EXPECT_EQ(exp2_rounded(-1e30F), 0.0F);
  EXPECT_EQ(exp2_rounded(-0.0F), 1.0F);
  EXPECT_EQ(log2_rounded(0.0F), -kInfinity);
  EXPECT_EQ(log2_rounded(-0.0F), -kInfinity);
  EXPECT_EQ(log2_rounded(kInfinity), kInfinity);
  EXPECT_EQ(rsqrt_rounded(0.0F), kInfinity);
  EXPECT_EQ(rsqrt_rounded(-0.0F), -kInfinity);
  EXPECT_EQ(rsqrt_rounded(kInfinity), 0.0F);
}

TEST(SimMath, EveryNanIsTheSame) {
  const auto bits = std::bit_cast<std::uint32_t>(kNan);
  for (const float x : {kNan, -kNan, std::bit_cast<float>(0x7F800001U)}) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(exp2_rounded(x)), bits);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(log2_rounded(x)), bits);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(rsqrt_rounded(x)), bits);
  }
  EXPECT_EQ(std::bit_cast<std::uint32_t>(log2_rounded(-kSmallest)), bits);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(rsqrt_rounded(-kInfinity)), bits);
}

}  // namespace sim_math_test
}  // namespace plumb::device::sim
