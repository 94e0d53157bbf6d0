// SPDX-License-Identifier: Apache-2.0
//
// Tests reference/formats/e4m3.h against a ladder (all values of the format, counted up in exact
// steps), literal values, and tiles whose codes the specification lists.
#include "reference/formats/e4m3.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/quantization/normalize_e4m3fn_to_e4m3fnuz.h"
#include "tests/support/format_ladder.h"

namespace plumb::tests {
namespace e4m3_test {

using reference::decode_e4m3;
using reference::Dialect;
using reference::encode_e4m3;
using reference::Overflow;

constexpr Dialect kFn = Dialect::e4m3fn, kFnuz = Dialect::e4m3fnuz;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const Ladder& ladder(Dialect dialect) {
  static const Ladder fn(0x1p-9, 8, 0x7F), fnuz(0x1p-10, 8, 0x80);
  return dialect == kFn ? fn : fnuz;
}

// The right code of x, which is not NaN, from the ladder and the rules for overflow and zero.
int expected_code(double x, Dialect dialect, Overflow overflow) {
  const Ladder& rungs = ladder(dialect);
  const int sign = std::signbit(x) ? 0x80 : 0;
  const int code = rungs.nearest(std::abs(x));
  if (code < rungs.codes()) return dialect == kFnuz && code == 0 ? 0 : sign + code;
  if (overflow == Overflow::saturate) return sign + rungs.codes() - 1;
  return dialect == kFnuz ? 0x80 : sign + 0x7F;
}

int wrong_codes(const std::vector<double>& numbers) {
  int wrong = 0;
  for (const Dialect dialect : {kFn, kFnuz}) {
    for (const Overflow overflow : {Overflow::saturate, Overflow::to_nan}) {
      for (const double x : numbers) {
        if (encode_e4m3(x, dialect, overflow) != expected_code(x, dialect, overflow)) ++wrong;
      }
    }
  }
  return wrong;
}

TEST(E4m3, DecodesEveryCodeToItsRungOfTheLadder) {
  for (int code = 0; code < 0x7F; ++code) {
    EXPECT_EQ(decode_e4m3(static_cast<std::uint8_t>(code), kFn), ladder(kFn).values[code]);
    EXPECT_EQ(decode_e4m3(static_cast<std::uint8_t>(code | 0x80), kFn), -ladder(kFn).values[code]);
  }
  for (int code = 0; code < 0x80; ++code) {
    EXPECT_EQ(decode_e4m3(static_cast<std::uint8_t>(code), kFnuz), ladder(kFnuz).values[code]);
    if (code == 0) continue;
    EXPECT_EQ(decode_e4m3(static_cast<std::uint8_t>(code | 0x80), kFnuz),
              -ladder(kFnuz).values[code]);
  }
}

TEST(E4m3, DecodesTheSpecialCodesAsWrittenInTheStandards) {
  struct Row {
    int code;
    double fn, fnuz;
  };
  // Zero, least and largest subnormal, least normal, one, largest, and the NaN codes of both
  // dialects.
  for (const Row row : std::initializer_list<Row>{{0x00, 0, 0},
                                                  {0x01, 0.001953125, 0.0009765625},
                                                  {0x07, 0.013671875, 0.0068359375},
                                                  {0x08, 0.015625, 0.0078125},
                                                  {0x38, 1, 0.5},
                                                  {0x40, 2, 1},
                                                  {0x77, 240, 120},
                                                  {0x7E, 448, 224},
                                                  {0x7F, kNan, 240},
                                                  {0x80, -0.0, kNan},
                                                  {0x81, -0.001953125, -0.0009765625},
                                                  {0xB8, -1, -0.5},
                                                  {0xFE, -448, -224},
                                                  {0xFF, kNan, -240}}) {
    const double fn = decode_e4m3(static_cast<std::uint8_t>(row.code), kFn);
    const double fnuz = decode_e4m3(static_cast<std::uint8_t>(row.code), kFnuz);
    EXPECT_TRUE(std::isnan(row.fn) ? std::isnan(fn) : fn == row.fn) << row.code;
    EXPECT_TRUE(std::isnan(row.fnuz) ? std::isnan(fnuz) : fnuz == row.fnuz) << row.code;
  }
  EXPECT_TRUE(std::signbit(decode_e4m3(0x80, kFn)));
}

TEST(E4m3, HasNoNanButTheNamedOnesAndNoInfinity) {
  for (int code = 0; code < 256; ++code) {
    const double fn = decode_e4m3(static_cast<std::uint8_t>(code), kFn);
    const double fnuz = decode_e4m3(static_cast<std::uint8_t>(code), kFnuz);
    EXPECT_EQ(std::isnan(fn), code == 0x7F || code == 0xFF);
    EXPECT_EQ(std::isnan(fnuz), code == 0x80);
    EXPECT_FALSE(std::isinf(fn) || std::isinf(fnuz));
  }
}

TEST(E4m3, AByteMeansTwiceAsMuchInFnAsInFnuz) {
  int compared = 0;
  for (int code = 0; code < 256; ++code) {
    const double fn = decode_e4m3(static_cast<std::uint8_t>(code), kFn);
    const double fnuz = decode_e4m3(static_cast<std::uint8_t>(code), kFnuz);
    if (std::isnan(fn) || std::isnan(fnuz) || fn == 0) continue;
    EXPECT_EQ(fn, 2 * fnuz);
    ++compared;
  }
  EXPECT_EQ(compared, 252);  // all codes except 0x00, 0x7F, 0x80, 0xFF
}

TEST(E4m3, EveryValueIsExactInBf16) {
  for (const Dialect dialect : {kFn, kFnuz}) {
    for (const double value : reference::e4m3_values(dialect)) {
      if (std::isnan(value)) continue;
      EXPECT_EQ(reference::decode_bf16(reference::encode_bf16(value)), value);
    }
  }
}

TEST(E4m3, EveryCodeSurvivesDecodeAndEncode) {
  for (const Dialect dialect : {kFn, kFnuz}) {
    for (int code = 0; code < 256; ++code) {
      const double value = decode_e4m3(static_cast<std::uint8_t>(code), dialect);
      if (dialect == kFn && std::isnan(value)) continue;  // decode loses the sign of NaN
      EXPECT_EQ(encode_e4m3(value, dialect), code);
      EXPECT_EQ(encode_e4m3(value, dialect, Overflow::to_nan), code);
    }
  }
}

TEST(E4m3, RoundsToNearestEvenAtAndBesideEveryMidpoint) {
  for (const Dialect dialect : {kFn, kFnuz}) {
    for (int code = 0; code < ladder(dialect).codes(); ++code) {
      EXPECT_EQ(wrong_codes(around(ladder(dialect).midpoint(code))), 0) << code;
      EXPECT_EQ(wrong_codes(around(ladder(dialect).values[code])), 0) << code;
    }
  }
}

TEST(E4m3, RoundsAMillionRandomFloatsToTheNearestCode) {
  std::vector<double> numbers;
  for (std::uint64_t i = 0; i < 500'000; ++i) {
    numbers.push_back(random_float(i));
    numbers.push_back(random_float_in(i, -13, 23));  // beyond both ends of the format
  }
  EXPECT_EQ(wrong_codes(numbers), 0);
}

TEST(E4m3, RoundsDoublesOnce) {
  // Exceeds the midpoint of 1 and 1.125 by less than the precision of a float.
  EXPECT_EQ(encode_e4m3(1.0625, kFn), 0x38);
  EXPECT_EQ(encode_e4m3(1.0625 + 0x1p-50, kFn), 0x39);
  EXPECT_EQ(encode_e4m3(464 + 0x1p-40, kFn, Overflow::to_nan), 0x7F);
  EXPECT_EQ(encode_e4m3(0x1p-10 + 0x1p-62, kFn), 0x01);
  EXPECT_EQ(encode_e4m3(std::numeric_limits<double>::denorm_min(), kFn), 0x00);
}

TEST(E4m3, BreaksTheSpecifiedTiesTowardsTheEvenMantissa) {
  EXPECT_EQ(encode_e4m3(1.0625, kFn), 0x38);
  EXPECT_EQ(encode_e4m3(1.1875, kFn), 0x3A);
  EXPECT_EQ(encode_e4m3(17, kFn), 0x58);
  EXPECT_EQ(encode_e4m3(19, kFn), 0x5A);
  EXPECT_EQ(encode_e4m3(0x1p-10, kFn), 0x00);
  EXPECT_EQ(encode_e4m3(1.5 * 0x1p-10, kFn), 0x01);
  EXPECT_EQ(encode_e4m3(0x1p-11, kFnuz), 0x00);
  EXPECT_EQ(encode_e4m3(1.5 * 0x1p-11, kFnuz), 0x01);
}

TEST(E4m3, OverflowSaturatesOrBecomesNanAsAsked) {
  struct Row {
    double value;
    int fn_saturated, fn_cast, fnuz_saturated, fnuz_cast;
  };
  for (const Row& row : std::initializer_list<Row>{
           {240, 0x77, 0x77, 0x7F, 0x7F},
           {std::nextafter(248.0, 0), 0x77, 0x77, 0x7F, 0x7F},
           {248, 0x78, 0x78, 0x7F, 0x80},  // a tie; the even neighbour is 256, which fnuz lacks
           {448, 0x7E, 0x7E, 0x7F, 0x80},
           {464, 0x7E, 0x7E, 0x7F, 0x80},  // tie between 448 and 480, which the format lacks
           {std::nextafter(464.0, 500), 0x7E, 0x7F, 0x7F, 0x80},
           {480, 0x7E, 0x7F, 0x7F, 0x80},
           {1e300, 0x7E, 0x7F, 0x7F, 0x80},
           {kInfinity, 0x7E, 0x7F, 0x7F, 0x80}}) {
    for (const int sign : {0, 0x80}) {
      const double x = sign ? -row.value : row.value;
      EXPECT_EQ(encode_e4m3(x, kFn), sign | row.fn_saturated) << x;
      EXPECT_EQ(encode_e4m3(x, kFn, Overflow::to_nan), sign | row.fn_cast) << x;
      EXPECT_EQ(encode_e4m3(x, kFnuz), sign | row.fnuz_saturated) << x;
      EXPECT_EQ(encode_e4m3(x, kFnuz, Overflow::to_nan), sign | row.fnuz_cast) << x;
    }
  }
}

TEST(E4m3, NanStaysNan) {
  for (const Overflow overflow : {Overflow::saturate, Overflow::to_nan}) {
    EXPECT_EQ(encode_e4m3(kNan, kFn, overflow), 0x7F);
    EXPECT_EQ(encode_e4m3(std::copysign(kNan, -1.0), kFn, overflow), 0xFF);
    EXPECT_EQ(encode_e4m3(kNan, kFnuz, overflow), 0x80);
    EXPECT_EQ(encode_e4m3(std::copysign(kNan, -1.0), kFnuz, overflow), 0x80);
  }
}

TEST(E4m3, NegativeZeroAndUnderflowNeverBecomeTheNanOfFnuz) {
  for (const double x : {-0.0, -1e-9, -0x1p-11, -0x1p-149, -1e-320}) {
    EXPECT_EQ(encode_e4m3(x, kFnuz), 0x00);
    EXPECT_EQ(encode_e4m3(x, kFnuz, Overflow::to_nan), 0x00);
  }
  EXPECT_EQ(encode_e4m3(-0.0, kFn), 0x80);
  EXPECT_EQ(encode_e4m3(-1e-9, kFn), 0x80);
}

TEST(E4m3, QuantisesTheGoldenTiles) {
  struct Tile {
    Dialect dialect;
    int exponent;  // exponent of the scale
    std::vector<float> values;
    std::vector<int> codes;
  };
  const std::vector<float> mixed = {3.7f, -1, 0.1f, 0, -0.0f, -1e-9f};
  for (const Tile& tile :
       std::initializer_list<Tile>{{kFn, -6, mixed, {0x77, 0xE8, 0x4D, 0x00, 0x80, 0x80}},
                                   {kFnuz, -5, mixed, {0x77, 0xE8, 0x4D, 0x00, 0x00, 0x00}},
                                   {kFn, 0, {448, 1}, {0x7E, 0x38}},
                                   {kFn, 1, {448.0001f, 1}, {0x76, 0x30}},
                                   {kFnuz, 0, {224, 1}, {0x7E, 0x40}}}) {
    const double largest = std::abs(tile.values[0]);
    const double limit = reference::e4m3_quantisation_max(tile.dialect);
    EXPECT_EQ(std::ceil(std::log2(largest / limit)), tile.exponent);
    for (std::size_t i = 0; i < tile.values.size(); ++i) {
      const double scaled = tile.values[i] / std::ldexp(1.0, tile.exponent);
      EXPECT_EQ(encode_e4m3(scaled, tile.dialect), tile.codes[i]) << tile.values[i];
    }
  }
}

TEST(E4m3, NormalisedWeightsKeepEveryProduct) {
  std::vector<std::uint8_t> codes(256);
  for (int code = 0; code < 256; ++code) codes[code] = static_cast<std::uint8_t>(code);
  std::vector<float> scales = {0.75f, 0x1p-20f};
  reference::normalize_e4m3fn_to_e4m3fnuz(codes, scales);
  EXPECT_EQ(scales, (std::vector<float>{1.5f, 0x1p-19f}));
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7F) == 0x7F) continue;
    EXPECT_EQ(decode_e4m3(codes[code], kFnuz) * 1.5,
              decode_e4m3(static_cast<std::uint8_t>(code), kFn) * 0.75);
  }
  EXPECT_EQ(codes[0x80], 0x00);
  // The specification requires this trap: NaN weights become finite.
  EXPECT_EQ(decode_e4m3(codes[0x7F], kFnuz), 240);
  EXPECT_EQ(decode_e4m3(codes[0xFF], kFnuz), -240);
}

}  // namespace e4m3_test
}  // namespace plumb::tests
