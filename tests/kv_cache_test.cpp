// SPDX-License-Identifier: Apache-2.0
//
// The V4 cache layout: where each byte of a token lies and what it means, in both fp8 dialects.
#include "reference/kv_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <vector>

#include "tests/mla_test_problem.h"

namespace plumb::tests {
namespace {

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
  bytes[577] = 255;             // a scale that is not a number
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
        // fp8: 3 mantissa bits, and a subnormal step of at most 2^-9 of a scale below 2^(d/64-3).
        const double step = d < reference::kMlaNope
                                ? std::abs(exact) / 16 + std::ldexp(0x1p-13, int(d / 64) - 3)
                                : std::abs(exact) / 256;
        EXPECT_LE(std::abs(values[d] - exact), step) << slot << " " << d;
      }
    }
  }
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

}  // namespace
}  // namespace plumb::tests
