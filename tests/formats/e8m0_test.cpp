// SPDX-License-Identifier: Apache-2.0
//
// Tests reference/formats/e8m0.h: every byte, and the two ways to round a scale up to a power of
// two.
#include "reference/formats/e8m0.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/format_ladder.h"

namespace plumb::tests {
namespace e8m0_test {

using reference::decode_e8m0;
using reference::encode_e8m0_by_bits;
using reference::encode_e8m0_by_log2;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The float that is `steps` ulp above 2^k.
float beside_power(int k, int steps) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(std::ldexp(1.0f, k)) + steps);
}

TEST(E8m0, DecodesEveryByteToItsPowerOfTwo) {
  double value = 1;
  for (int i = 0; i < 127; ++i) value /= 2;
  for (int byte = 0; byte < 255; ++byte, value *= 2) {
    EXPECT_EQ(decode_e8m0(static_cast<std::uint8_t>(byte)), value) << byte;
  }
  EXPECT_TRUE(std::isnan(decode_e8m0(255)));
  EXPECT_EQ(decode_e8m0(0), 0x1p-127);
  EXPECT_EQ(decode_e8m0(127), 1);
  EXPECT_EQ(decode_e8m0(254), 0x1p127);
}

TEST(E8m0, BothMethodsKeepPowersOfTwo) {
  for (int byte = 1; byte < 255; ++byte) {
    const auto scale = static_cast<float>(decode_e8m0(static_cast<std::uint8_t>(byte)));
    EXPECT_EQ(encode_e8m0_by_bits(scale), byte);
    EXPECT_EQ(encode_e8m0_by_log2(scale), byte);
  }
}

TEST(E8m0, BitsGiveTheLeastPowerOfTwoNotBelowAMillionScales) {
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    const float scale = std::abs(random_float_in(i, -126, 253));
    const double rounded = decode_e8m0(encode_e8m0_by_bits(scale));
    ASSERT_TRUE(rounded >= scale && rounded / 2 < scale) << scale;
    ASSERT_EQ(encode_e8m0_by_bits(-scale), encode_e8m0_by_bits(scale));
  }
}

TEST(E8m0, BitsTakeEveryUlpAboveAPowerToTheNextOne) {
  for (int k = -126; k < 127; ++k) {
    EXPECT_EQ(encode_e8m0_by_bits(beside_power(k, 1)), k + 128);
    EXPECT_EQ(encode_e8m0_by_bits(beside_power(k + 1, -1)), k + 128);
  }
}

TEST(E8m0, BitsAreClampedTo1And254) {
  EXPECT_EQ(encode_e8m0_by_bits(0.0f), 1);
  EXPECT_EQ(encode_e8m0_by_bits(0x1p-149f), 1);
  EXPECT_EQ(encode_e8m0_by_bits(0x1p-127f), 1);
  EXPECT_EQ(encode_e8m0_by_bits(beside_power(127, 1)), 254);
  EXPECT_EQ(encode_e8m0_by_bits(kInfinity), 254);
  EXPECT_EQ(encode_e8m0_by_bits(std::numeric_limits<float>::quiet_NaN()), 254);
}

TEST(E8m0, Log2IsClampedTo0And255) {
  EXPECT_EQ(encode_e8m0_by_log2(0.0f), 0);
  EXPECT_EQ(encode_e8m0_by_log2(0x1p-149f), 0);
  EXPECT_EQ(encode_e8m0_by_log2(0x1p-127f), 0);
  EXPECT_EQ(encode_e8m0_by_log2(kInfinity), 255);
  EXPECT_EQ(encode_e8m0_by_log2(-1.0f), 255);
  EXPECT_EQ(encode_e8m0_by_log2(std::numeric_limits<float>::quiet_NaN()), 255);
}

// Number of ulp above 2^k for which an fp32 log2 still rounds to k: log2(1 + u 2^-23) is at most
// half the distance from k to the next float. Computed by hand from u * 1.4427 * 2^-23 <= half.
TEST(E8m0, Log2LosesABinadeForAsManyUlpAsWorkedOutByHand) {
  struct Row {
    int k, lost;
  };
  for (const Row row : std::initializer_list<Row>{
           {0, 0},    {1, 0},   {2, 0},    {3, 0},    {4, 1},    {5, 1},    {7, 1},   {8, 2},
           {9, 2},    {15, 2},  {16, 5},   {17, 5},   {31, 5},   {32, 11},  {63, 11}, {64, 22},
           {126, 22}, {-1, 0},  {-3, 0},   {-4, 0},   {-5, 1},   {-8, 1},   {-9, 2},  {-16, 2},
           {-17, 5},  {-32, 5}, {-33, 11}, {-64, 11}, {-65, 22}, {-126, 22}}) {
    for (int u = 1; u <= 64; ++u) {
      const float scale = beside_power(row.k, u);
      EXPECT_EQ(encode_e8m0_by_bits(scale), row.k + 128) << row.k << " + " << u;
      EXPECT_EQ(encode_e8m0_by_log2(scale), row.k + (u <= row.lost ? 127 : 128))
          << row.k << " + " << u;
    }
  }
}

TEST(E8m0, Log2AgreesWithAnExtendedPrecisionLogarithmBesideEveryPower) {
  const long double ln2 = std::log(2.0L);
  for (int k = -126; k < 127; ++k) {
    const auto here = static_cast<float>(k);
    const long double half = (static_cast<long double>(std::nextafter(here, kInfinity)) - k) / 2;
    for (int u = 1; u <= 64; ++u) {
      // At k = 0 a float resolves any excess. log1p computes the excess exactly where log2 would
      // lose it.
      const bool lost = k != 0 && std::log1p(u * 0x1p-23L) / ln2 <= half;
      ASSERT_EQ(encode_e8m0_by_log2(beside_power(k, u)), k + (lost ? 127 : 128)) << k << "+" << u;
    }
    for (int u = 1; u <= 64; ++u) {
      ASSERT_EQ(encode_e8m0_by_log2(beside_power(k + 1, -u)), k + 128) << k << "-" << u;
    }
  }
}

TEST(E8m0, TheMethodsAgreeAwayFromPowersAndNeverDifferByMoreThanOne) {
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    const float scale = std::abs(random_float_in(i, -126, 253));
    const std::uint32_t ulps = std::bit_cast<std::uint32_t>(scale) & 0x7FFFFF;
    const int difference = encode_e8m0_by_bits(scale) - encode_e8m0_by_log2(scale);
    ASSERT_TRUE(difference == 0 || (difference == 1 && ulps >= 1 && ulps <= 22)) << scale;
  }
}

TEST(E8m0, FloorsOfTheQuantisersGiveTheSpecifiedBytes) {
  struct Row {
    float scale;
    int byte;
  };
  for (const Row row : std::initializer_list<Row>{{1e-4f / 448, 105},  // KV and activations
                                                  {1e-4f / 224, 106},  // KV on gfx942
                                                  {1e-4f, 114},        // FlashMLA's tests
                                                  {1e-10f / 448, 85},  // indexer queries
                                                  {3.7f / 448, 121},   // golden tile
                                                  {448.0001f / 448, 128}}) {
    EXPECT_EQ(encode_e8m0_by_bits(row.scale), row.byte);
    EXPECT_EQ(encode_e8m0_by_log2(row.scale), row.byte);
  }
}

}  // namespace e8m0_test
}  // namespace plumb::tests
