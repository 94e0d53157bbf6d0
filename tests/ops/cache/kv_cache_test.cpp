// SPDX-License-Identifier: Apache-2.0
//
// Tests the V4 and V3.2 cache layouts: the place and meaning of each byte of a token, in both fp8
// dialects and with every reading of fp32 scales.
#include "reference/cache/kv_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "tests/support/mla_test_problem.h"

namespace plumb::tests {
namespace kv_cache_test {

using reference::Dialect;
using reference::kMlaDim;
using reference::KvCache;
using Values = std::array<float, kMlaDim>;

std::vector<double> decoded(const KvCache& cache, std::int64_t slot) {
  std::vector<double> values(kMlaDim);
  reference::decode_token(cache, slot, values.data());
  return values;
}

std::vector<std::uint8_t> encoded(const Values& values, Dialect dialect) {
  std::vector<std::uint8_t> block(reference::kv_block_bytes(1), 0xaa);
  reference::encode_token(block.data(), 1, 0, dialect, values);
  return block;
}

TEST(KvCache, BlocksArePaddedToWholeTokens) {
  EXPECT_EQ(reference::kv_block_bytes(64), 37440);
  EXPECT_EQ(reference::kv_block_bytes(256), 149760);
  EXPECT_EQ(reference::kv_block_bytes(2), 1728);
}

TEST(KvCache, AllTokensOfABlockComeBeforeItsScales) {
  std::vector<std::uint8_t> bytes(2 * 1728, 0);
  const KvCache cache{bytes.data(), 1728, 2, 2, Dialect::e4m3fn};
  // Slot 3 is block 1, offset 1: data at 1728 + 576, scales at 1728 + 2 * 576 + 8.
  bytes[1728 + 576 + 64] = 0x40;       // 2.0, first value of the second group
  bytes[1728 + 1152 + 8 + 1] = 130;    // times 2^3
  bytes[1728 + 576 + 448 + 2] = 0x80;  // second RoPE value: bf16 0xbf80 = -1
  bytes[1728 + 576 + 448 + 3] = 0xbf;
  const std::vector<double> values = decoded(cache, 3);
  EXPECT_EQ(values[64], 16);
  EXPECT_EQ(values[449], -1);
  EXPECT_EQ(values[63], 0);
  EXPECT_EQ(values[448], 0);
  EXPECT_EQ(decoded(cache, 2)[64], 0);
}

TEST(KvCache, SpecialBytesKeepTheirMeaning) {
  std::vector<std::uint8_t> bytes(reference::kv_block_bytes(1), 0);
  KvCache cache{bytes.data(), reference::kv_block_bytes(1), 1, 1, Dialect::e4m3fn};
  bytes[0] = bytes[64] = 0x38;  // 1.0
  bytes[576] = 0;               // a scale of 2^-127, not 0
  bytes[577] = 255;             // a NaN scale
  EXPECT_EQ(decoded(cache, 0)[0], 0x1p-127);
  EXPECT_TRUE(std::isnan(decoded(cache, 0)[64]));
  bytes[576] = 127;
  bytes[0] = 0x80;  // -0 in e4m3fn, NaN in e4m3fnuz
  EXPECT_EQ(decoded(cache, 0)[0], 0);
  cache.dialect = Dialect::e4m3fnuz;
  EXPECT_TRUE(std::isnan(decoded(cache, 0)[0]));
}

TEST(KvCache, OneDialectReadAsTheOtherIsOffByTwo) {
  Values values{};
  for (std::int64_t d = 0; d < kMlaDim; ++d) values[d] = static_cast<float>(normal(1, d));
  std::vector<std::uint8_t> block = encoded(values, Dialect::e4m3fn);
  KvCache cache{block.data(), reference::kv_block_bytes(1), 1, 1, Dialect::e4m3fn};
  const std::vector<double> as_written = decoded(cache, 0);
  cache.dialect = Dialect::e4m3fnuz;
  const std::vector<double> as_other = decoded(cache, 0);
  for (std::int64_t d = 0; d < reference::kMlaNope; ++d) {
    if (as_written[d] == 0) continue;
    EXPECT_EQ(as_other[d], as_written[d] / 2) << d;
  }
  EXPECT_EQ(as_other[500], as_written[500]);
}

TEST(KvCache, ScalesAreTheLeastPowerOfTwoThatFits) {
  Values values{};
  values[0] = 448;      // group 0: scale 1
  values[64] = 448.5f;  // group 1: scale 2
  values[128] = 7;      // group 2: 7 = 448 / 64 exactly
  const std::vector<std::uint8_t> fn = encoded(values, Dialect::e4m3fn);
  EXPECT_EQ(fn[576], 127);
  EXPECT_EQ(fn[577], 128);
  EXPECT_EQ(fn[578], 121);
  EXPECT_EQ(fn[579], 105);  // all zero: 1e-4 / 448 rounded up to 2^-22
  EXPECT_EQ(fn[583], 0);    // pad byte
  EXPECT_EQ(fn[0], 0x7e);
  const std::vector<std::uint8_t> fnuz = encoded(values, Dialect::e4m3fnuz);
  EXPECT_EQ(fnuz[576], 128);  // 448 / 224
  EXPECT_EQ(fnuz[579], 106);
}

TEST(KvCache, EncodedTokensComeBackWithinHalfAStep) {
  for (const Dialect dialect : {Dialect::e4m3fn, Dialect::e4m3fnuz}) {
    TestCache cache(3, 53, dialect);
    const auto value = [](std::int64_t t, std::int64_t d) {
      return std::ldexp(normal(7, t * kMlaDim + d), static_cast<int>(d / 64) - 3);
    };
    for (std::int64_t slot = 0; slot < 3 * 53; ++slot) cache.write(slot, slot, value);
    for (std::int64_t slot = 0; slot < 3 * 53; ++slot) {
      const std::vector<double> values = decoded(cache.view, slot);
      for (std::int64_t d = 0; d < kMlaDim; ++d) {
        const double exact = value(slot, d);
        // Half a step. fp8 has 3 mantissa bits, and a subnormal step of at most 2^-9 of a scale
        // below 2^(d/64-3).
        const double step = d < reference::kMlaNope
                                ? std::abs(exact) / 16 + std::ldexp(0x1p-13, int(d / 64) - 3)
                                : std::abs(exact) / 256;
        EXPECT_LE(std::abs(values[d] - exact), step) << slot << " " << d;
      }
    }
  }
}

// ---- V3.2 ----

using reference::KvLayout;
using reference::ScaleReading;
using reference::ScaleWriting;

std::vector<double> decoded_v32(const std::vector<std::uint8_t>& token, ScaleReading reading) {
  KvCache cache{token.data(), 656, 1, 1, Dialect::e4m3fn, KvLayout::v32, reading};
  std::vector<double> values(576);
  reference::decode_token(cache, 0, values.data());
  return values;
}

void put_scale(std::uint8_t* token, std::int64_t j, float scale) {
  std::memcpy(token + 512 + 4 * j, &scale, sizeof scale);
}

TEST(KvCacheV32, EachTokenHoldsItsCodesItsScalesAndItsRope) {
  std::vector<std::uint8_t> bytes(2 * 1500, 0);  // two blocks of two tokens, padded to 1500 bytes
  KvCache cache{bytes.data(), 1500, 2, 2, Dialect::e4m3fn, KvLayout::v32};
  EXPECT_EQ(cache.key_dims(), 576);
  EXPECT_EQ(reference::kv_block_bytes(64, KvLayout::v32), 41984);
  // Slot 3 is block 1, offset 1.
  std::uint8_t* token = bytes.data() + 1500 + 656;
  token[127] = token[128] = token[511] = 0x40;  // 2.0 in groups 0, 1 and 3
  put_scale(token, 0, 0.5f);
  put_scale(token, 1, 4);
  put_scale(token, 3, 8);
  token[528 + 2 * 63 + 1] = 0xbf;  // the last rope value: bf16 0xbf80 = -1
  token[528 + 2 * 63] = 0x80;
  std::vector<double> values(576);
  reference::decode_token(cache, 3, values.data());
  EXPECT_EQ(values[127], 1);
  EXPECT_EQ(values[128], 8);
  EXPECT_EQ(values[511], 16);
  EXPECT_EQ(values[575], -1);
  EXPECT_EQ(values[512], 0);
}

TEST(KvCacheV32, ReadingsDifferWhereAScaleHasAMantissa) {
  std::vector<std::uint8_t> token(656, 0);
  token[0] = 0x3e;  // 1.75
  // 1 + 2^-7 + 2^-9 rounds to the bf16 1 + 2^-7; 1.75 times it is 1.763671875, between the bf16
  // numbers 1.7578125 and 1.765625 and nearer to the latter. 1.75 * (1 + 2^-7 + 2^-9) is
  // 1.76708984375, between 1.765625 and 1.7734375, nearer to the former.
  put_scale(token.data(), 0, 1 + 0x1p-7f + 0x1p-9f);
  EXPECT_EQ(decoded_v32(token, ScaleReading::fp32)[0], 1.765625);
  EXPECT_EQ(decoded_v32(token, ScaleReading::bf16)[0], 1.765625);
  EXPECT_EQ(decoded_v32(token, ScaleReading::e8m0)[0], 1.75);
  // 1 + 2^-8 + 2^-20 rounds up to the bf16 1 + 2^-7, which gives 1.763671875 again. Unrounded, the
  // product is 1.7568..., nearest to 1.7578125.
  put_scale(token.data(), 0, 1 + 0x1p-8f + 0x1p-20f);
  EXPECT_EQ(decoded_v32(token, ScaleReading::fp32)[0], 1.7578125);
  EXPECT_EQ(decoded_v32(token, ScaleReading::bf16)[0], 1.765625);
  // 1.9375 is a bf16 number, but not a power of two.
  put_scale(token.data(), 0, 1.9375f);
  EXPECT_EQ(decoded_v32(token, ScaleReading::fp32)[0], 3.390625);
  EXPECT_EQ(decoded_v32(token, ScaleReading::bf16)[0], 3.390625);
  EXPECT_EQ(decoded_v32(token, ScaleReading::e8m0)[0], 1.75);
}

TEST(KvCacheV32, ReadingsAgreeOnPowersOfTwo) {
  std::vector<float> values(576);
  for (std::int64_t d = 0; d < 576; ++d) {
    values[d] = std::ldexp(static_cast<float>(normal(5, d)), static_cast<int>(d / 128) * 9 - 12);
  }
  for (const Dialect dialect : {Dialect::e4m3fn, Dialect::e4m3fnuz}) {
    std::vector<std::uint8_t> token(656);
    reference::encode_v32_token(token.data(), dialect, ScaleWriting::power_of_two,
                                std::span<const float, 576>(values));
    const std::vector<double> plain = decoded_v32(token, ScaleReading::fp32);
    EXPECT_EQ(plain, decoded_v32(token, ScaleReading::bf16));
    EXPECT_EQ(plain, decoded_v32(token, ScaleReading::e8m0));
    reference::encode_v32_token(token.data(), dialect, ScaleWriting::fp32,
                                std::span<const float, 576>(values));
    EXPECT_NE(decoded_v32(token, ScaleReading::fp32), decoded_v32(token, ScaleReading::bf16));
  }
}

TEST(KvCacheV32, ScalesTakeTheLargestValueOfAGroupToTheLargestCode) {
  std::vector<float> values(576, 0);
  values[0] = 448;
  values[128] = -7;
  values[256] = 450;
  std::vector<std::uint8_t> token(656);
  const auto scales = [&](ScaleWriting writing, Dialect dialect) {
    reference::encode_v32_token(token.data(), dialect, writing,
                                std::span<const float, 576>(values));
    std::vector<float> stored(4);
    std::memcpy(stored.data(), token.data() + 512, 16);
    return stored;
  };
  EXPECT_EQ(scales(ScaleWriting::fp32, Dialect::e4m3fn),
            (std::vector<float>{1, 7 / 448.0f, 450 / 448.0f, 0x1p-126f}));
  EXPECT_EQ(token[128], 0xfe);  // -448
  EXPECT_EQ(scales(ScaleWriting::power_of_two, Dialect::e4m3fn),
            (std::vector<float>{1, 0x1p-6f, 2, 0x1p-126f}));
  EXPECT_EQ(scales(ScaleWriting::fp32, Dialect::e4m3fnuz)[0], 2);
}

TEST(KvCache, BlocksPastFourGigabytesAreReached) {
  const std::int64_t stride = reference::kv_block_bytes(64), blocks = 150'000;
  void* memory = mmap(nullptr, stride * blocks, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space";
  auto* bytes = static_cast<std::uint8_t*>(memory);
  const KvCache cache{bytes, stride, blocks, 64, Dialect::e4m3fn};
  Values values{};
  values[3] = 5;
  reference::encode_token(bytes + (blocks - 1) * stride, 64, 63, cache.dialect, values);
  EXPECT_EQ(decoded(cache, cache.slots() - 1)[3], 5);
  munmap(memory, stride * blocks);
}

}  // namespace kv_cache_test
}  // namespace plumb::tests
