// SPDX-License-Identifier: Apache-2.0
//
// Tests the bounds of the lightning indexer's logits with correct arithmetic in several orders, on
// random keys, flat and paged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/indexer/fp8_mqa_logits.h"
#include "reference/indexer/fp8_paged_mqa_logits.h"
#include "reference/matrix_unit.h"
#include "tests/support/fp32_logits.h"

namespace plumb::reference {
namespace mqa_logits_bound_test {

using fp32::honest_logit;
using fp32::logit_of_scaled_key;
using fp32::Manner;
using fp32::RandomRows;

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

struct Margins {
  std::vector<double> looseness, rows;

  // Returns false if an error exceeds its bound.
  bool add(const Estimate& expected, const std::function<float(std::int64_t, std::int64_t)>& got) {
    Estimate worst_case = expected;
    worst_case.structured = true;
    bool within = true;
    for (std::int64_t row = 0; row < expected.rows; ++row) {
      double largest = 0;
      for (std::int64_t column = 0; column < expected.columns; ++column) {
        const std::int64_t i = row * expected.columns + column;
        const double error = std::abs(got(row, column) - expected.centre(i));
        within = within && error <= expected.bound(i) && error <= worst_case.bound(i);
        largest = std::max(largest, error / expected.bound(i));
        if (error > 0.1 * kUnitF32 * std::abs(expected.value[i])) {
          looseness.push_back(expected.bound(i) / error);
        }
      }
      rows.push_back(largest);
    }
    return within;
  }
};

TEST(MqaLogitsBound, HoldsForHonestArithmeticAndIsTight) {
  const std::vector<Manner> manners = {{"one chain each", 1, 1, false, false, false},
                                       {"eight chains each", 8, 8, false, false, false},
                                       {"backwards, scale inside", 1, 8, true, true, false},
                                       {"fused multiply-add", 32, 1, false, false, true},
                                       {"fused, scale inside", 4, 1, true, true, true},
                                       {"trees", 32, 32, false, false, false}};
  for (const Manner& manner : manners) {
    Margins margins;
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
      const RandomRows data(seed, seed % 3 == 0 ? 64 : 32, seed % 2 == 0 ? 128 : 64);
      const Estimate expected =
          fp8_mqa_logits(data.inputs(), {.chains = manner.fused ? 1 : manner.head_chains});
      EXPECT_TRUE(margins.add(expected, [&](std::int64_t row, std::int64_t key) {
        return honest_logit(data, row, key, manner);
      })) << manner.name;
    }
    ASSERT_GE(margins.looseness.size(), 1000U) << manner.name;
    // Errors of few long chains with terms of both signs have exponential tails, so their bounds
    // are wider (tests/formats/bound_test.cpp).
    const int chains = manner.fused ? 1 : manner.head_chains;
    EXPECT_LE(quantile(margins.looseness, 0.5), chains < 8 ? 24 : 16) << manner.name;
    EXPECT_GE(quantile(margins.rows, 0.95), 0.1) << manner.name;
  }
}

// wgmma of sm90 truncates products and sums to 14 bits, so logits are too small.
TEST(MqaLogitsBound, HoldsForTheFp8UnitOfSm90) {
  const Manner manner{"sm90 fp8", 1, 8, false, false, false, &kSm90Fp8};
  Margins margins;
  double mean = 0, allowance = 0, variance = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const RandomRows data(300 + seed, 64, 128);
    std::vector<float> logits;
    for (std::int64_t i = 0; i < RandomRows::kRows * RandomRows::kKeys; ++i) {
      logits.push_back(honest_logit(data, i / RandomRows::kKeys, i % RandomRows::kKeys, manner));
    }
    const auto logit = [&](std::int64_t row, std::int64_t key) {
      return logits[row * RandomRows::kKeys + key];
    };
    const Estimate expected =
        fp8_mqa_logits(data.inputs(), {.chains = 8, .unit = SumUnit::sm90_fp8});
    EXPECT_TRUE(margins.add(expected, logit)) << seed;
    EXPECT_FALSE(Margins().add(fp8_mqa_logits(data.inputs(), {.chains = 8}), logit)) << seed;
    for (std::int64_t row = 0; row < expected.rows; ++row) {
      for (std::int64_t key = 0; key < expected.columns; ++key) {
        const double value = expected.value[row * expected.columns + key];
        const double columns = static_cast<double>(expected.columns);
        mean += std::copysign(1.0, value) * (logit(row, key) - value) / columns;
      }
      allowance += expected.row_systematic[row];
      variance += expected.row_mean_sigma[row] * expected.row_mean_sigma[row];
    }
  }
  EXPECT_LE(quantile(margins.looseness, 0.5), 30);
  EXPECT_GE(quantile(margins.rows, 0.95), 0.1);
  EXPECT_LE(std::abs(mean), allowance + 5 * std::sqrt(variance));
}

// Keys are multiplied by their scales first. The product takes them in fp32 or, in matrix units, in
// bf16.
TEST(MqaLogitsBound, HoldsForKeysThatAreScaledInFrontOfTheProduct) {
  for (const bool in_unit : {false, true}) {
    Numerics numerics{.chains = 8};
    if (in_unit) {
      numerics.product = Format::bf16;
      numerics.unit = SumUnit::sm90_bf16;
    }
    Margins margins;
    bool wider = false;
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
      const RandomRows data(400 + seed, seed % 3 == 0 ? 64 : 32, seed % 2 == 0 ? 128 : 64);
      std::vector<float> logits;
      for (std::int64_t i = 0; i < RandomRows::kRows * RandomRows::kKeys; ++i) {
        const std::int64_t row = i / RandomRows::kKeys, key = i % RandomRows::kKeys;
        logits.push_back(logit_of_scaled_key(data, row, key, in_unit));
      }
      const auto logit = [&](std::int64_t row, std::int64_t key) {
        return logits[row * RandomRows::kKeys + key];
      };
      Fp8MqaLogits inputs = data.inputs();
      wider = wider || !Margins().add(fp8_mqa_logits(inputs, numerics), logit);
      inputs.scaled_keys = true;
      EXPECT_TRUE(margins.add(fp8_mqa_logits(inputs, numerics), logit)) << seed;
    }
    EXPECT_TRUE(wider) << "the bound of scaled scores holds for scaled keys";
    EXPECT_LE(quantile(margins.looseness, 0.5), 24) << in_unit;
    EXPECT_GE(quantile(margins.rows, 0.95), 0.1) << in_unit;
  }
}

TEST(MqaLogitsBound, IsTheSameForKeysWhoseScalesArePowersOfTwo) {
  RandomRows data(5, 16, 64);
  std::fill(data.scales.begin(), data.scales.end(), 0.25F);
  Fp8MqaLogits inputs = data.inputs();
  const Estimate expected = fp8_mqa_logits(inputs, {.chains = 8});
  inputs.scaled_keys = true;
  EXPECT_EQ(fp8_mqa_logits(inputs, {.chains = 8}).sigma, expected.sigma);
}

// Sums of fp8 products in which every partial sum is rounded to bf16.
TEST(MqaLogitsBound, HoldsForADeclaredNarrowAccumulator) {
  Margins margins;
  const Numerics narrow{.accumulator = Format::bf16, .chains = 1};
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const RandomRows data(100 + seed, 16, 64);
    const auto logit = [&](std::int64_t row, std::int64_t key) {
      float total = 0;
      for (std::int64_t head = 0; head < data.heads; ++head) {
        const std::int64_t vector = row * data.heads + head;
        double score = 0;
        for (std::int64_t d = 0; d < data.dim; ++d) {
          const double product = decode_e4m3(data.q[vector * data.dim + d], Dialect::e4m3fn) *
                                 decode_e4m3(data.k[key * data.dim + d], Dialect::e4m3fn);
          score = decode_bf16(encode_bf16(score + product));
        }
        total += data.weights[vector] * static_cast<float>(std::max(score, 0.0));
      }
      return total * data.scales[key];
    };
    EXPECT_TRUE(margins.add(fp8_mqa_logits(data.inputs(), narrow), logit)) << seed;
    EXPECT_FALSE(Margins().add(fp8_mqa_logits(data.inputs(), {.chains = 1}), logit)) << seed;
  }
  EXPECT_GE(quantile(margins.rows, 0.95), 0.1);
}

TEST(PagedMqaLogits, AgreeWithThePrefillOfTheSameKeysInEitherLayout) {
  const RandomRows data(7, 16, 64);
  const Estimate flat = fp8_mqa_logits(data.inputs(), {});
  for (const bool shuffled : {false, true}) {
    const IndexerCacheLayout layout{16, 64, 64, shuffled};
    // The tokens of both requests, blocks in descending order.
    const std::vector<std::int32_t> table = {3, 2, 1, 0, 3, 2, 1, 0}, lengths = {64, 64};
    std::vector<std::uint8_t> cache(static_cast<std::size_t>(4 * layout.block_bytes()));
    for (std::int64_t n = 0; n < 64; ++n) {
      std::uint8_t* base = &cache[static_cast<std::size_t>((3 - n / 16) * layout.block_bytes())];
      for (std::int64_t d = 0; d < 64; ++d) {
        // 16 tokens of 64 values, or four tiles of 16 tokens and 16 values.
        const std::int64_t at = shuffled ? d / 16 * 256 + n % 16 * 16 + d % 16 : n % 16 * 64 + d;
        base[at] = data.k[static_cast<std::size_t>(n * 64 + d)];
      }
      std::memcpy(base + 1024 + 4 * (n % 16), &data.scales[static_cast<std::size_t>(n)], 4);
    }
    Fp8PagedMqaLogits inputs;
    inputs.q = data.q.data();
    inputs.weights = data.weights.data();
    inputs.context_lens = lengths.data();
    inputs.cache = cache.data();
    inputs.block_stride_bytes = layout.block_bytes();
    inputs.layout = layout;
    inputs.block_table = table.data();
    inputs.block_table_row_stride = 4;
    inputs.requests = 2;
    inputs.heads = 16;
    inputs.dim = 64;
    inputs.max_context_len = inputs.columns = 64;
    const Estimate paged = fp8_paged_mqa_logits(inputs, {});
    EXPECT_EQ(paged.value, flat.value);
    EXPECT_EQ(paged.sigma, flat.sigma);
  }
}

}  // namespace mqa_logits_bound_test
}  // namespace plumb::reference
