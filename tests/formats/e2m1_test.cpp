// SPDX-License-Identifier: Apache-2.0
//
// Tests reference/formats/e2m1.h: every code, every rounding boundary, and the two nibbles of a
// byte.
#include "reference/formats/e2m1.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/format_ladder.h"

namespace plumb::tests {
namespace e2m1_test {

using reference::decode_e2m1;

// The rounding of the helper in DeepGEMM's tests.
constexpr reference::E2m1Policy kHelper{reference::E2m1Ties::toward_zero, false};
int encode_e2m1(double value) { return reference::encode_e2m1(value, kHelper); }

// The nearest code, found by search. Ties go to the smaller code, as in kHelper.
int expected_code(double x) {
  const Ladder rungs(0.5, 2, 7);  // 0 .5 1 1.5 2 3 4 6
  int best = 0;
  for (int code = 1; code < 8; ++code) {
    if (std::abs(std::abs(x) - rungs.values[code]) < std::abs(std::abs(x) - rungs.values[best])) {
      best = code;
    }
  }
  return best != 0 && x < 0 ? best + 8 : best;
}

TEST(E2m1, DecodesEveryCode) {
  const double values[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
  for (int code = 0; code < 16; ++code) {
    const double value = decode_e2m1(static_cast<std::uint8_t>(code));
    EXPECT_EQ(value, values[code]);
    EXPECT_EQ(std::signbit(value), code >= 8);
    EXPECT_EQ(encode_e2m1(value), code == 8 ? 0 : code);
  }
}

TEST(E2m1, TiesGoTowardsZeroAtEveryBoundary) {
  const double boundaries[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
  for (int code = 0; code < 7; ++code) {
    const double tie = boundaries[code];
    EXPECT_EQ(encode_e2m1(tie), code);
    EXPECT_EQ(encode_e2m1(-tie), code == 0 ? 0 : code + 8);
    EXPECT_EQ(encode_e2m1(std::nextafter(tie, 9)), code + 1);
    EXPECT_EQ(encode_e2m1(std::nextafter(-tie, -9)), code + 9);
    for (const double x : around(tie)) EXPECT_EQ(encode_e2m1(x), expected_code(x)) << x;
  }
}

TEST(E2m1, RoundsAMillionRandomFloatsToTheNearestCode) {
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    const float x = random_float_in(i, -4, 8);
    ASSERT_EQ(encode_e2m1(x), expected_code(x)) << x;
  }
}

// Source: PTX ISA, cvt.rn.satfinite.e2m1x2: nearest, ties to even, the sign of zero is kept.
TEST(E2m1, RoundsTiesToEvenAndKeepsTheSignOfZeroByDefault) {
  const double boundaries[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
  const int even[7] = {0, 2, 2, 4, 4, 6, 6};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(reference::encode_e2m1(boundaries[i]), even[i]);
    EXPECT_EQ(reference::encode_e2m1(-boundaries[i]), even[i] + 8);
    for (const double x : around(boundaries[i])) {
      if (std::abs(x) == boundaries[i]) continue;
      EXPECT_EQ(reference::encode_e2m1(x) % 8, expected_code(x) % 8) << x;
    }
  }
  EXPECT_EQ(reference::encode_e2m1(-0.0), 8);
  EXPECT_EQ(reference::encode_e2m1(-0.2), 8);
  EXPECT_EQ(reference::encode_e2m1(-0.2, {reference::E2m1Ties::even, false}), 0);
  EXPECT_EQ(reference::encode_e2m1(-1.75, {reference::E2m1Ties::toward_zero}), 11);
}

TEST(E2m1, TiesMayGoAwayFromZero) {
  const double boundaries[7] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(reference::encode_e2m1(boundaries[i], {reference::E2m1Ties::away}), i + 1);
    EXPECT_EQ(reference::encode_e2m1(-boundaries[i], {reference::E2m1Ties::away}), i + 9);
    for (const double x : around(boundaries[i])) {
      if (std::abs(x) == boundaries[i]) continue;
      EXPECT_EQ(reference::encode_e2m1(x, {reference::E2m1Ties::away}), reference::encode_e2m1(x))
          << x;
    }
  }
}

TEST(E2m1, TheHelperNeverWritesMinusZeroAndSaturates) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(encode_e2m1(-0.0), 0);
  EXPECT_EQ(encode_e2m1(-0.2), 0);
  EXPECT_EQ(encode_e2m1(-0.25), 0);
  EXPECT_EQ(encode_e2m1(1e30), 7);
  EXPECT_EQ(encode_e2m1(infinity), 7);
  EXPECT_EQ(encode_e2m1(-infinity), 15);
  EXPECT_EQ(encode_e2m1(-std::numeric_limits<double>::quiet_NaN()), 0);
}

TEST(E2m1, TheEvenElementIsInTheLowNibble) {
  EXPECT_EQ(reference::pack_e2m1(0x3, 0xA), 0xA3);
  for (int byte = 0; byte < 256; ++byte) {
    const std::uint8_t even = reference::unpack_e2m1(static_cast<std::uint8_t>(byte), 0);
    const std::uint8_t odd = reference::unpack_e2m1(static_cast<std::uint8_t>(byte), 1);
    EXPECT_EQ(even + 16 * odd, byte);
    EXPECT_EQ(reference::pack_e2m1(even, odd), byte);
  }
}

}  // namespace e2m1_test
}  // namespace plumb::tests
