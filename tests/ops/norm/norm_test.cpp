// SPDX-License-Identifier: Apache-2.0
//
// Tests the references of the RMSNorm family against results computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/norm/fused_add_rms_norm.h"
#include "reference/norm/mtp_input_rms_norm.h"
#include "reference/norm/q_kv_rms_norm.h"
#include "reference/norm/rms_norm.h"

namespace plumb::reference {
namespace norm_test {

using Bits = std::vector<std::uint16_t>;

Bits bf16(const std::vector<double>& values) {
  Bits bits;
  for (const double value : values) bits.push_back(encode_bf16(value));
  return bits;
}

FusedAddRmsNormInputs fused_add(const Bits& x, const Bits& residual, const Bits& stored,
                                const Bits& weight) {
  FusedAddRmsNormInputs inputs;
  inputs.x = x.data();
  inputs.residual = residual.data();
  inputs.stored = stored.data();
  inputs.weight = weight.data();
  inputs.hidden = inputs.x_row_stride = static_cast<std::int64_t>(weight.size());
  inputs.tokens = static_cast<std::int64_t>(residual.size() / weight.size());
  return inputs;
}

// The sums are 3, 4, 5, 0 and -6, 8, 0, 0, with mean squares 12.5 and 25.
TEST(FusedAddRmsNormReference, HandMadeRows) {
  const Bits x = bf16({1, 2, 3, 4, -1, 2, 3, -4}), residual = bf16({2, 2, 2, -4, -5, 6, -3, 4});
  const Bits sum = bf16({3, 4, 5, 0, -6, 8, 0, 0}), weight = bf16({1, 2, 4, 8});
  const auto out = fused_add_rms_norm(fused_add(x, residual, sum, weight), {});
  const double r = 1 / std::sqrt(12.5);
  const std::vector<double> normalised = {3 * r, 8 * r, 20 * r, 0, -1.2, 3.2, 0, 0};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(out.residual.value[i], decode_bf16(sum[i])) << i;
    EXPECT_NEAR(out.x.value[i], normalised[i], 1e-12) << i;
  }
}

// 1 + 2^-8 is a tie and rounds to even, so the stored sum is 1. The default norm uses 1, the norm
// of the fp32 sum uses 1 + 2^-8.
TEST(FusedAddRmsNormReference, TheNormIsOfTheStoredSumUnlessDeclaredOtherwise) {
  const Bits x = bf16({0x1p-8, 0}), residual = bf16({1, 1}), stored = bf16({1, 1});
  const Bits weight = bf16({1, 1});
  FusedAddRmsNormInputs inputs = fused_add(x, residual, stored, weight);
  EXPECT_EQ(encode_bf16(1 + 0x1p-8), stored[0]);
  EXPECT_EQ(fused_add_rms_norm(inputs, {}).x.value[0], 1);
  inputs.sum = NormedSum::fp32;
  const double first = 1 + 0x1p-8, r = 1 / std::sqrt((first * first + 1) / 2);
  const auto unrounded = fused_add_rms_norm(inputs, {});
  EXPECT_DOUBLE_EQ(unrounded.x.value[0], first * r);
  EXPECT_DOUBLE_EQ(unrounded.x.value[1], r);
  EXPECT_EQ(unrounded.residual.value[0], first);
  inputs.sum = NormedSum::fp32_squares;
  const auto squares = fused_add_rms_norm(inputs, {});
  EXPECT_DOUBLE_EQ(squares.x.value[0], r);
  EXPECT_DOUBLE_EQ(squares.x.value[1], r);
  EXPECT_EQ(squares.residual.value[0], first);
}

// The norm uses the sum that a device stored, even if that sum is wrong.
TEST(FusedAddRmsNormReference, ConsumesTheBytesOfTheDevice) {
  const Bits x = bf16({1, 1}), residual = bf16({1, 1}), stored = bf16({6, 8});
  const Bits weight = bf16({1, 1});
  const auto out = fused_add_rms_norm(fused_add(x, residual, stored, weight), {});
  EXPECT_EQ(out.residual.value[0], 2);
  EXPECT_DOUBLE_EQ(out.x.value[0], 6 / std::sqrt(50));
}

// The only error of the residual is the rounding of the store: rounding a sum of two bf16 numbers
// to fp32 first never changes the bf16 result. Tries pairs of exponents and signs, with
// significands that end in ones.
TEST(FusedAddRmsNormReference, RoundingTheSumToFp32FirstChangesNothing) {
  for (int exponent = -40; exponent <= 40; ++exponent) {
    for (const int significand : {128, 129, 191, 192, 254, 255}) {
      for (const int other : {128, 129, 193, 255, -128, -129, -193, -255}) {
        const double a = significand, b = std::ldexp(static_cast<double>(other), exponent);
        const auto single = static_cast<float>(static_cast<float>(a) + static_cast<float>(b));
        EXPECT_EQ(encode_bf16(static_cast<double>(single)), encode_bf16(a + b)) << a << " " << b;
      }
    }
  }
}

TEST(QKvRmsNormReference, EachHasItsOwnWidthStrideAndWeight) {
  // Two rows "q q | kv | gap"; q: 3 4, then 0 2; kv: 7, then -5.
  const Bits rows = bf16({3, 4, 7, 99, 0, 2, -5, 99});
  const Bits q_weight = bf16({1, 2}), kv_weight = bf16({4});
  const auto out = q_kv_rms_norm(
      {rows.data(), rows.data() + 2, q_weight.data(), kv_weight.data(), 2, 2, 1, 4, 4, 0}, {});
  const double r = 1 / std::sqrt(12.5);
  EXPECT_DOUBLE_EQ(out.q.value[0], 3 * r);
  EXPECT_DOUBLE_EQ(out.q.value[1], 8 * r);
  EXPECT_EQ(out.q.value[2], 0);
  EXPECT_DOUBLE_EQ(out.q.value[3], 2 * std::sqrt(2.0));
  EXPECT_EQ(out.kv.value[0], 4);
  EXPECT_EQ(out.kv.value[1], -4);
}

}  // namespace norm_test
}  // namespace plumb::reference
