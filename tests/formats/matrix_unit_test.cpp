// SPDX-License-Identifier: Apache-2.0
//
// Tests the emulated matrix units against sums measured on a card and against results computed by
// hand. tests/cuda/matrix_units.cu compares them with a card, bit for bit.
#include "reference/matrix_unit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace plumb::reference {
namespace matrix_unit_test {

float sum_of(const MatrixUnit& unit, const std::vector<float>& a, const std::vector<float>& b,
             float accumulator = 0) {
  return matrix_sum(unit, a.data(), b.data(), std::ssize(a), accumulator);
}

// Sum of `terms` squares of x: the unit adds blocks of `block` terms, and fp32 adds the blocks.
float promoted(float x, std::int64_t terms, std::int64_t block) {
  const std::vector<float> operands(static_cast<std::size_t>(block), x);
  float sum = 0;
  for (std::int64_t i = 0; i < terms; i += block) sum += sum_of(kSm90Fp8, operands, operands);
  return sum;
}

// Measured with wgmma m64n8k32 on an H200.
TEST(MatrixUnit, AddsFp8AsMeasured) {
  EXPECT_EQ(promoted(1.125F, 7168, 7168), 7995.5F);
  EXPECT_EQ(promoted(1.125F, 7168, 128), 9072);
  EXPECT_EQ(promoted(1, 131072, 131072), 16384);
}

TEST(MatrixUnit, AlignsBeforeTermsCancel) {
  const std::vector<float> a{16, -16, 0x1p-3F}, b{16, 16, 0x1p-3F};
  EXPECT_EQ(sum_of(kSm90Fp8, a, b), 0);         // 2^-6 is below 2^(8 - 13)
  EXPECT_EQ(sum_of(kSm90Bf16, a, b), 0x1p-6F);  // and above 2^(8 - 25)
}

TEST(MatrixUnit, CutsEachTermByItself) {
  // 2^-26 is one place below the last bit that is kept next to 1, so even 16 such terms are lost.
  const std::vector<float> a(16, 0x1p-13F);
  EXPECT_EQ(sum_of(kSm90Bf16, a, a, 1), 1);
  // 16 terms of 2^-24 add up to eight last places of 1. A single 2^-24 is half a last place, and is
  // truncated.
  const std::vector<float> b(16, 0x1p-12F);
  EXPECT_EQ(sum_of(kSm90Bf16, b, b, 1), 1 + 0x1p-20F);
  EXPECT_EQ(sum_of(kSm90Bf16, {0x1p-12F}, {0x1p-12F}, 1), 1);
  EXPECT_EQ(sum_of(kSm90Bf16, {0x1p-12F}, {-0x1p-12F}, -1), -1);
  EXPECT_EQ(sum_of(kTwentyFourBits, b, b, 1), 1);
}

TEST(MatrixUnit, TakesTheExponentOfAProductFromItsOperands) {
  // 1.5 * 1.5 = 2.25 has the exponent 0 of its operands, so 2^-13 is kept next to it. Next to 2 = 2
  // * 1, with exponent 1, 2^-13 is lost.
  EXPECT_EQ(sum_of(kSm90Fp8, {1.5F, -1.5F, 0x1p-6F}, {1.5F, 1.5F, 0x1p-7F}), 0x1p-13F);
  EXPECT_EQ(sum_of(kSm90Fp8, {2, -2, 0x1p-6F}, {1, 1, 0x1p-7F}), 0);
}

TEST(MatrixUnit, StartsFromTheSumOfThePreviousInstruction) {
  std::vector<float> a(32, 0.0F), b(32, 1.0F);
  a[0] = 1;
  a[16] = 0x1p-24F;
  EXPECT_EQ(sum_of(kSm90Bf16, a, b), 1);
  MatrixUnit longer = kSm90Bf16;
  longer.step = 32;
  a[17] = 0x1p-24F;
  EXPECT_EQ(sum_of(longer, a, b), 1 + 0x1p-23F);
}

TEST(MatrixUnit, KeepsSubnormalsAndSpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sum_of(kSm90Bf16, {0x1p-130F}, {1}), 0x1p-130F);
  EXPECT_EQ(sum_of(kSm90Bf16, {0x1p-75F}, {0x1.8p-74F}), 0x1p-149F);
  EXPECT_EQ(sum_of(kSm90Bf16, {0}, {1}, -0.0F), 0);
  EXPECT_FALSE(std::signbit(sum_of(kSm90Bf16, {0}, {1}, -0.0F)));
  EXPECT_EQ(sum_of(kSm90Bf16, {kInfinity, 1}, {2, 3}), kInfinity);
  EXPECT_TRUE(std::isnan(sum_of(kSm90Bf16, {kInfinity, 1}, {0, 3})));
  EXPECT_TRUE(std::isnan(sum_of(kSm90Bf16, {kInfinity, kInfinity}, {1, -1})));
}

}  // namespace matrix_unit_test
}  // namespace plumb::reference
