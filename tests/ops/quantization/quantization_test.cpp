// SPDX-License-Identifier: Apache-2.0
//
// Tests the references of the quantisers and of the cache writers: scales, codes and byte offsets
// computed by hand, and fp32 arithmetic in the forms of implementations, which always gives
// permitted results.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases/judge/judge_codes.h"
#include "cases/tensors/fill.h"
#include "reference/cache/concat_and_cache_ds_mla.h"
#include "reference/cache/indexer_k_quant_and_cache.h"
#include "reference/cache/quantize_and_insert_k_cache.h"
#include "reference/formats/bfloat16.h"
#include "reference/quantization/mxfp4_quant.h"
#include "reference/quantization/per_token_group_quant_fp8.h"

namespace plumb::tests {
namespace quantization_test {

using reference::Bf16Rows;
using reference::CodeEstimate;
using reference::CodeFormat;
using reference::Dialect;
using reference::GroupQuant;
using reference::Numerics;

const Numerics kExactDivision{.function_ulp = 0.5};

std::vector<std::uint16_t> to_bf16(const std::vector<double>& values) {
  std::vector<std::uint16_t> bits;
  for (const double value : values) bits.push_back(reference::encode_bf16(value));
  return bits;
}

std::vector<int> exact_codes(const CodeEstimate& estimate) {
  std::vector<int> codes;
  for (std::size_t i = 0; i < estimate.before.value.size(); ++i) {
    codes.push_back(honest_codes(estimate, static_cast<std::int64_t>(i)).exact);
  }
  return codes;
}

// Scale byte and codes of one row that is one group.
struct Quantised {
  int byte;
  std::vector<int> codes;
};
Quantised quantise(const std::vector<double>& values, GroupQuant how) {
  const std::vector<std::uint16_t> bits = to_bf16(values);
  const auto columns = static_cast<std::int64_t>(values.size());
  how.group = columns;
  const Bf16Rows x{bits.data(), 1, columns, columns};
  const int byte = exact_codes(group_scale_bytes(x, how, kExactDivision)).front();
  return {byte, exact_codes(group_codes(x, {std::ldexp(1.0, byte - 127)}, how, kExactDivision))};
}

TEST(GroupQuant, GoldenTiles) {
  const GroupQuant fn = reference::k_cache_quant(Dialect::e4m3fn, 1e-4f);
  const GroupQuant fnuz = reference::k_cache_quant(Dialect::e4m3fnuz, 1e-4f);
  const std::vector<double> mixed = {3.7, -1, 0.1, 0, -0.0, -1e-9};
  EXPECT_EQ(quantise(mixed, fn).byte, 121);
  EXPECT_EQ(quantise(mixed, fn).codes, (std::vector<int>{0x77, 0xe8, 0x4d, 0x00, 0x80, 0x80}));
  // fnuz divides by 224 instead of 448, so the scale is twice as large. A byte of fnuz has half the
  // value, so the codes are the same.
  EXPECT_EQ(quantise(mixed, fnuz).byte, 122);
  EXPECT_EQ(quantise(mixed, fnuz).codes, (std::vector<int>{0x77, 0xe8, 0x4d, 0x00, 0x00, 0x00}));
  EXPECT_EQ(quantise({448, 1}, fn).byte, 127);
  EXPECT_EQ(quantise({448, 1}, fn).codes, (std::vector<int>{0x7e, 0x38}));
  EXPECT_EQ(quantise({450, 1}, fn).byte, 128);
  EXPECT_EQ(quantise({450, 1}, fn).codes, (std::vector<int>{0x76, 0x30}));
}

TEST(GroupQuant, FloorsStandUnderAmaxOrUnderTheScale) {
  const auto byte_of_zeros = [](const reference::ActivationQuant& options) {
    return quantise({0, 0}, per_token_group_quant_fp8(options)).byte;
  };
  EXPECT_EQ(byte_of_zeros({.amax_floor = 1e-4f}), 127 - 22);
  EXPECT_EQ(byte_of_zeros({.dialect = Dialect::e4m3fnuz, .amax_floor = 1e-4f}), 127 - 21);
  EXPECT_EQ(byte_of_zeros({.amax_floor = 1e-10f}), 127 - 42);
  EXPECT_EQ(byte_of_zeros({.scale_floor = 1e-10f}), 127 - 33);
  EXPECT_EQ(byte_of_zeros({.scale_floor = 1e-4f}), 127 - 13);
  EXPECT_EQ(quantise({0, 0}, reference::ds_mla_quant(Dialect::e4m3fn, 1e-4f)).byte, 127 - 13);
  EXPECT_EQ(quantise({0, 0}, reference::k_cache_quant(Dialect::e4m3fn, 1e-8f)).byte, 127 - 35);
}

TEST(GroupQuant, PlainScalesAreQuotients) {
  const std::vector<std::uint16_t> bits = to_bf16({1, -3, 0, 0, 0.5, 0.25});
  const Bf16Rows x{bits.data(), 1, 6, 6};
  GroupQuant how = reference::ds_mla_quant(Dialect::e4m3fn, std::numeric_limits<float>::min());
  how.group = 2;
  const reference::Estimate scales = group_scales(x, how, kExactDivision);
  EXPECT_EQ(scales.value[0], 3.0 / 448);
  EXPECT_EQ(scales.value[1], double{std::numeric_limits<float>::min()});
  EXPECT_EQ(scales.value[2], 0.5 / 448);
  const std::vector<double> stored = {3.0f / 448, std::numeric_limits<float>::min(), 0.5f / 448};
  // 448 / 3 is 149.3, between the codes of 144 and 160. 0.25 / (0.5 / 448) is 224.
  EXPECT_EQ(exact_codes(group_codes(x, stored, how, kExactDivision)),
            (std::vector<int>{0x71, 0xfe, 0x00, 0x00, 0x7e, 0x76}));
}

TEST(GroupQuant, NothingIsRightUnderWhatIsNoScale) {
  const std::vector<std::uint16_t> bits = to_bf16({1});
  const Bf16Rows x{bits.data(), 1, 1, 1};
  const GroupQuant how = reference::fp8_quant(Dialect::e4m3fn, 1);
  for (const double scale : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    const auto codes = honest_codes(group_codes(x, {scale}, how, kExactDivision), 0);
    EXPECT_FALSE(codes.nan || codes.least <= codes.most) << scale;
  }
}

TEST(GroupQuant, AShortLastGroupHasItsOwnScaleAndZeros) {
  const std::vector<std::uint16_t> bits = to_bf16({448, 1, 448, 7});
  const Bf16Rows x{bits.data(), 1, 4, 4};
  GroupQuant how = reference::fp8_quant(Dialect::e4m3fn, 3);
  EXPECT_EQ(exact_codes(group_scale_bytes(x, how, kExactDivision)),
            (std::vector<int>{127, 127 - 6}));
  EXPECT_EQ(exact_codes(group_codes(x, {1, 0x1p-6}, how, kExactDivision)),
            (std::vector<int>{0x7e, 0x38, 0x7e, 0x7e, 0x00, 0x00}));
}

TEST(Mxfp4Quant, RoundsAsHardwareDoes) {
  const GroupQuant how = reference::mxfp4_quant(0x1.8p-124);
  const Quantised tile =
      quantise({6, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0.25, -0.26, -5.1, -0.0}, how);
  EXPECT_EQ(tile.codes, (std::vector<int>{7, 0, 2, 2, 4, 4, 6, 6, 8, 9, 15, 8}));
  EXPECT_EQ(quantise({0.0}, how).byte, 1);
}

TEST(Mxfp4Quant, TiesGoDownAndZerosHaveNoSignWhereThatIsChosen) {
  const GroupQuant how = reference::mxfp4_quant(1e-4f, {reference::E2m1Ties::toward_zero, false});
  const Quantised tile =
      quantise({6, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0.25, -0.26, -5.1, -0.0}, how);
  EXPECT_EQ(tile.byte, 127);
  EXPECT_EQ(tile.codes, (std::vector<int>{7, 0, 1, 2, 3, 4, 5, 6, 0, 9, 15, 0}));
  EXPECT_EQ(quantise({6.25}, how).byte, 128);
  EXPECT_EQ(quantise({0.0}, how).byte, 127 - 15);  // 1e-4 / 6 = 2^-15.9
}

// Rule of AITER, and EVEN of torchao: from a mantissa of 1.75 on, the scale is the next power of
// two. Larger numbers saturate.
TEST(Mxfp4Quant, TheRuleEvenRoundsTheMantissaOfAmaxToOneBit) {
  const GroupQuant how =
      reference::mxfp4_quant(0x1p-125, {reference::E2m1Ties::away}, reference::ScaleRule::even);
  EXPECT_EQ(quantise({4}, how).byte, 127);
  EXPECT_EQ(quantise({6}, how).byte, 127);
  EXPECT_EQ(quantise({6.96875}, how).byte, 127);
  EXPECT_EQ(quantise({7}, how).byte, 128);
  EXPECT_EQ(quantise({3.96875}, how).byte, 127);
  EXPECT_EQ(quantise({3.46875}, how).byte, 126);
  EXPECT_EQ(quantise({0.0}, how).byte, 0);
  const Quantised tile = quantise({6.5, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0.25, -0.0}, how);
  EXPECT_EQ(tile.byte, 127);
  EXPECT_EQ(tile.codes, (std::vector<int>{7, 1, 2, 3, 4, 5, 6, 7, 9, 8}));
}

// Source: OCP MX, section 6.3.
TEST(Mxfp4Quant, TheRuleFloorTakesTheExponentOfAmax) {
  const GroupQuant how = reference::mxfp4_quant(0x1.8p-124, {}, reference::ScaleRule::floor);
  EXPECT_EQ(quantise({4}, how).byte, 127);
  EXPECT_EQ(quantise({7.96875}, how).byte, 127);
  EXPECT_EQ(quantise({8}, how).byte, 128);
  EXPECT_EQ(quantise({0.0}, how).byte, 1);
  EXPECT_EQ(quantise({7.5, -7.5, 1}, how).codes, (std::vector<int>{7, 15, 2}));
}

TEST(Mxfp4Quant, TheEvenElementIsInTheLowNibble) {
  const std::vector<std::uint8_t> bytes = {0x21, 0xf8};
  EXPECT_EQ(reference::unpack_codes(bytes), (std::vector<std::uint8_t>{1, 2, 8, 15}));
}

TEST(CacheEntries, LieWhereTheLayoutsSay) {
  const reference::CacheEntry v4 = reference::k_cache_entry(64, 3, true);
  EXPECT_EQ(v4.codes.front(), 3 * 576);
  EXPECT_EQ(v4.codes.back(), 3 * 576 + 447);
  EXPECT_EQ(v4.scales.front(), 64 * 576 + 24);
  EXPECT_EQ(v4.scales.back(), 64 * 576 + 30);
  EXPECT_EQ(v4.copied.front(), 3 * 576 + 448);
  EXPECT_EQ(v4.copied.back(), 64 * 576 + 31);
  EXPECT_EQ(v4.copied.size(), 129U);
  EXPECT_EQ(reference::k_cache_entry(64, 3, false).copied.back(), 3 * 576 + 575);
  const reference::CacheEntry v32 = reference::ds_mla_entry(2);
  EXPECT_EQ(v32.codes.front(), 1312);
  EXPECT_EQ(v32.scales.front(), 1312 + 512);
  EXPECT_EQ(v32.scales.size(), 16U);
  EXPECT_EQ(v32.copied.front(), 1312 + 528);
  EXPECT_EQ(v32.copied.back(), 1312 + 655);
}

TEST(CacheEntries, TheIndexersAreBlockPlanarOrTiled) {
  reference::IndexerCacheLayout layout{.page = 64};
  reference::CacheEntry entry = indexer_k_entry(layout, 18);
  EXPECT_EQ(entry.codes[0], 18 * 128);
  EXPECT_EQ(entry.codes[127], 18 * 128 + 127);
  EXPECT_EQ(entry.scales.front(), 64 * 128 + 18 * 4);
  layout.shuffled = true;
  entry = indexer_k_entry(layout, 18);
  // Token 18 is token 2 in the second row of tiles. A row has 8 tiles of 256 bytes, and each tile
  // has 16 bytes of the token.
  EXPECT_EQ(entry.codes[0], 16 * 128 + 2 * 16);
  EXPECT_EQ(entry.codes[15], 16 * 128 + 2 * 16 + 15);
  EXPECT_EQ(entry.codes[16], 16 * 128 + 256 + 2 * 16);
  EXPECT_EQ(entry.codes[127], 16 * 128 + 7 * 256 + 2 * 16 + 15);
  EXPECT_EQ(entry.scales.front(), 64 * 128 + 18 * 4);
  layout.page = 1;
  EXPECT_EQ(indexer_k_entry(layout, 0).codes[17], 17);
}

// Forms of the fp32 quotient. The last one uses a reciprocal within one ulp and a correction, as
// fast divisions do.
float divided(float x, float scale) { return x / scale; }
float by_reciprocal(float x, float scale) { return x * (1 / scale); }
float corrected(float x, float scale) {
  const float reciprocal = std::nextafter(1 / scale, 0.0f);
  const float quotient = x * reciprocal;
  return std::fma(std::fma(-quotient, scale, x), reciprocal, quotient);
}

struct Arithmetic {
  float (*quotient)(float, float);
  bool by_reciprocal;
  double function_ulp;
};
constexpr Arithmetic kHonest[] = {
    {divided, false, 0.5}, {by_reciprocal, true, 0.5}, {corrected, false, 1}};

// Verdict on the codes of random rows under fp32 scales, computed with `arithmetic`.
cases::TensorReport verdict(const Arithmetic& arithmetic, CodeFormat format, std::uint64_t seed) {
  constexpr std::int64_t kRows = 20, kColumns = 1280, kGroup = 128;
  std::vector<std::uint16_t> bits;
  for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
    bits.push_back(reference::encode_bf16(cases::normal(seed, static_cast<std::uint64_t>(i))));
  }
  const Bf16Rows x{bits.data(), kRows, kColumns, kColumns};
  const double largest = format == CodeFormat::e4m3fn ? 448 : 224;
  const GroupQuant how{.code = format,
                       .largest = largest,
                       .group = kGroup,
                       .amax_floor = 1e-4,
                       .by_reciprocal = arithmetic.by_reciprocal};
  const Numerics numerics{.function_ulp = arithmetic.function_ulp};
  std::vector<double> scales;
  for (const double scale : group_scales(x, how, numerics).value) {
    scales.push_back(static_cast<float>(scale));
  }
  cases::HostTensor codes({.name = "q", .dtype = cases::Dtype::u8, .shape = {kRows, kColumns}});
  for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
    const auto value = static_cast<float>(reference::decode_bf16(bits[i]));
    const float quotient = arithmetic.quotient(value, static_cast<float>(scales[i / kGroup]));
    codes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(encode(format, double{quotient}));
  }
  return judge_codes(codes, group_codes(x, scales, how, numerics), {});
}

TEST(GroupQuant, HonestQuotientsNeverLeaveTheBoundAndComeNearIt) {
  for (const Arithmetic& arithmetic : kHonest) {
    double margin = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      for (const CodeFormat format : {CodeFormat::e4m3fn, CodeFormat::e4m3fnuz}) {
        const cases::TensorReport report = verdict(arithmetic, format, seed);
        EXPECT_TRUE(report.passed()) << report.failures.front();
        margin = std::max(margin, report.margin);
      }
    }
    EXPECT_GT(margin, 0.25) << arithmetic.function_ulp;
    EXPECT_LE(margin, 1);
  }
}

TEST(GroupQuant, BiasedQuotientsFlipTooMuch) {
  // Quotients are two ulp too large, but correct rounding is declared.
  const auto upwards = [](float x, float scale) {
    return x / scale * (1 + 2 * std::numeric_limits<float>::epsilon());
  };
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    failed += !verdict({upwards, false, 0.5}, CodeFormat::e4m3fn, seed).passed();
  }
  EXPECT_EQ(failed, 5);
}

}  // namespace quantization_test
}  // namespace plumb::tests
