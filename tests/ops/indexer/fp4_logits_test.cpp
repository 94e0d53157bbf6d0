// SPDX-License-Identifier: Apache-2.0
//
// The reference of fp4_paged_mqa_logits against results computed by hand, and its bound against
// fp32 results in other orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cases/tensors/fill.h"
#include "reference/indexer/fp4_paged_mqa_logits.h"

namespace plumb::reference {
namespace fp4_logits_test {

// E2M1: bit 3 is the sign; 2 is 1.0, 4 is 2.0, 7 is 6.0.
constexpr std::uint8_t kOne = 2, kTwo = 4, kSix = 7, kMinus = 8;
constexpr std::uint8_t kScaleOfOne = 127;
constexpr std::int64_t kPage = 2, kDim = 64, kHeads = 2;

// One row with two heads. Head 0 is +1 in dims 0 and 33, head 1 is -1 in dim 0; their weights are 3
// and -5. A block of 2 tokens takes 68 bytes, and the stride is 72.
struct OneRow {
  std::vector<std::uint8_t> q = std::vector<std::uint8_t>(kHeads * kDim / 2);
  std::vector<std::uint8_t> q_scales = std::vector<std::uint8_t>(kHeads * 2, kScaleOfOne);
  std::vector<std::uint8_t> cache = std::vector<std::uint8_t>(3 * 72, 255);
  std::vector<float> weights{3, -5};
  std::vector<std::int32_t> length{3}, table{2, 1};
  Fp4PagedMqaLogits inputs;

  OneRow() {
    set(q.data(), 0, kOne);
    set(q.data(), 33, kOne);
    set(q.data() + kDim / 2, 0, kMinus | kOne);
    inputs.q = q.data();
    inputs.q_scales = q_scales.data();
    inputs.page = kPage;
    inputs.weights = weights.data();
    inputs.context_lens = length.data();
    inputs.cache = cache.data();
    inputs.block_stride_bytes = 72;
    inputs.block_table = table.data();
    inputs.block_table_row_stride = 2;
    inputs.requests = 1;
    inputs.heads = kHeads;
    inputs.dim = kDim;
    inputs.max_context_len = 4;
    inputs.columns = 4;
  }
  static void set(std::uint8_t* codes, int dim, std::uint8_t code) {
    std::uint8_t& byte = codes[dim / 2];
    byte = dim % 2 == 0 ? (byte & 0xf0) | code : static_cast<std::uint8_t>((byte & 15) | code << 4);
  }
  // Token `token` of block `block`: these codes in dims 0 and 33, and a scale for each group.
  void key(int block, int token, std::array<std::uint8_t, 2> codes,
           std::array<std::uint8_t, 2> scales) {
    std::uint8_t* begin = cache.data() + block * 72;
    std::fill_n(begin + token * 32, 32, std::uint8_t{0});
    set(begin + token * 32, 0, codes[0]);
    set(begin + token * 32, 33, codes[1]);
    std::ranges::copy(scales, begin + 64 + token * 2);
  }
  Estimate logits() const { return fp4_paged_mqa_logits(inputs, {}); }
};

// The first block in the table is block 2. A key of 2 and 6 under scales 1 and 1/2 has the dot
// products 5 and -2; one of -2 alone 0 and 2 (head 0 is clipped). Scales of the queries count too.
TEST(Fp4Logits, AreWhatTheFormulaSays) {
  OneRow data;
  data.key(2, 0, {kTwo, kSix}, {kScaleOfOne, kScaleOfOne - 1});
  data.key(2, 1, {kMinus | kTwo, 0}, {kScaleOfOne, kScaleOfOne});
  data.key(1, 0, {kMinus, kOne}, {kScaleOfOne, kScaleOfOne + 3});
  EXPECT_EQ(data.logits().value, (std::vector<double>{15, -10, 24, 0}));
  data.q_scales = {kScaleOfOne + 1, kScaleOfOne, kScaleOfOne + 2, kScaleOfOne};
  EXPECT_EQ(data.logits().value, (std::vector<double>{21, -40, 24, 0}));
}

TEST(Fp4Logits, CleanColumnsAreMinusInfinity) {
  OneRow data;
  data.key(2, 0, {kTwo, 0}, {kScaleOfOne, kScaleOfOne});
  data.inputs.context_lens_dims = 1;
  data.inputs.clean = true;
  data.length = {1};
  const double none = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(data.logits().value, (std::vector<double>{6, none, none, none}));
}

TEST(Fp4Logits, NoContextHasNoScores) {
  OneRow data;
  data.length = {0};
  EXPECT_EQ(data.logits().value, (std::vector<double>(4)));
}

TEST(Fp4Entries, BeginBehindAllCodesOfTheBlock) {
  const Fp4Entry entry = fp4_entry(64, 128, 5);
  EXPECT_EQ(entry.codes, 5 * 64);
  EXPECT_EQ(entry.scales, 64 * 64 + 5 * 4);
}

// Random codes and scales: 32 heads of 128 dims, as many tokens as a page holds.
struct Random {
  static constexpr std::int64_t kTokens = 16, kManyHeads = 32, kManyDims = 128;
  static constexpr std::int64_t kBlock = kTokens * 68;
  std::vector<std::uint8_t> q, q_scales, cache;
  std::vector<float> weights;
  std::vector<std::int32_t> length{kTokens}, table{0};
  Fp4PagedMqaLogits inputs;

  explicit Random(std::uint64_t seed) {
    const auto fill = [&](std::vector<std::uint8_t>& to, std::int64_t count, std::uint64_t salt,
                          bool is_scale) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint64_t bits =
            cases::random_bits(cases::mix(seed, salt), static_cast<std::uint64_t>(i));
        to.push_back(static_cast<std::uint8_t>(is_scale ? 120 + bits % 12 : bits & 0xff));
      }
    };
    fill(q, kManyHeads * 64, 1, false);
    fill(q_scales, kManyHeads * 4, 2, true);
    fill(cache, kTokens * 64, 3, false);
    fill(cache, kTokens * 4, 4, true);
    for (std::uint64_t i = 0; i < kManyHeads; ++i) {
      weights.push_back(static_cast<float>(cases::normal(cases::mix(seed, 5), i)));
    }
    inputs.q = q.data();
    inputs.q_scales = q_scales.data();
    inputs.page = kTokens;
    inputs.weights = weights.data();
    inputs.context_lens = length.data();
    inputs.cache = cache.data();
    inputs.block_stride_bytes = kBlock;
    inputs.block_table = table.data();
    inputs.block_table_row_stride = 1;
    inputs.requests = 1;
    inputs.heads = kManyHeads;
    inputs.dim = kManyDims;
    inputs.max_context_len = kTokens;
    inputs.columns = kTokens;
  }
  static float number(const std::uint8_t* codes, const std::uint8_t* scales, std::int64_t d) {
    constexpr std::array kSizes{0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
    const int code = codes[d / 2] >> (d % 2 * 4) & 15;
    const float size = std::ldexp(kSizes[static_cast<std::size_t>(code & 7)],
                                  static_cast<int>(scales[d / 32]) - 127);
    return code & 8 ? -size : size;
  }
  // In fp32, over dims and heads in this order. `scaled_late`: the sum of a group is multiplied by
  // both scales, as matrix units do.
  float honest(std::int64_t token, bool backwards, bool scaled_late) const {
    const std::uint8_t* k = cache.data() + token * 64;
    const std::uint8_t* k_scales = cache.data() + kTokens * 64 + token * 4;
    float logit = 0;
    for (std::int64_t i = 0; i < kManyHeads; ++i) {
      const std::int64_t head = backwards ? kManyHeads - 1 - i : i;
      const std::uint8_t *codes = &q[static_cast<std::size_t>(head * 64)],
                         *scales = &q_scales[static_cast<std::size_t>(head * 4)];
      float dot = 0;
      for (std::int64_t group = 0; group < 4; ++group) {
        float sum = 0;
        for (std::int64_t j = 0; j < 32; ++j) {
          const std::int64_t d = 32 * group + (backwards ? 31 - j : j);
          const float product = number(codes, scales, d) * number(k, k_scales, d);
          (scaled_late ? sum : dot) += product;
        }
        dot += sum;
      }
      logit += weights[static_cast<std::size_t>(head)] * std::max(dot, 0.0F);
    }
    return logit;
  }
};

std::int64_t beyond_bound(float fault) {
  constexpr std::uint64_t kSeeds = 200;
  constexpr Numerics kOneChain{.chains = 1};
  std::int64_t beyond = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Random data(seed);
    const Estimate estimate = fp4_paged_mqa_logits(data.inputs, kOneChain);
    for (std::int64_t token = 0; token < Random::kTokens; ++token) {
      for (const bool backwards : {false, true}) {
        const double got = data.honest(token, backwards, seed % 2 == 0) * (1 + fault);
        beyond += !(std::abs(got - estimate.centre(token)) <= estimate.bound(token));
      }
    }
  }
  return beyond;
}

TEST(Fp4LogitsBound, HoldsInOtherOrders) { EXPECT_EQ(beyond_bound(0), 0); }
// Control: 256 roundings of fp32.
TEST(Fp4LogitsBound, FindsASmallError) { EXPECT_GT(beyond_bound(0x1p-16F), 200 * 16 * 2 / 2); }

}  // namespace fp4_logits_test
}  // namespace plumb::reference
