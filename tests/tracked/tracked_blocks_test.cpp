// SPDX-License-Identifier: Apache-2.0
//
// Four elements at a time give the results of one at a time.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "reference/tracked/tracked.h"
#include "tests/support/random.h"

namespace plumb::reference {
namespace tracked_blocks_test {

const Numerics kFp32{};
constexpr std::int64_t kColumns = 300;

std::vector<double> fp32_numbers(std::int64_t count, tests::Random& random) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(random.normal()));
  }
  return numbers;
}

Tracked with_error(const std::vector<double>& numbers) {
  return exp(Tracked(numbers, {static_cast<std::int64_t>(numbers.size())}, kFp32));
}

// A number that is infinite takes its block through the loop for single elements.
TEST(TrackedBlocks, FourElementsAtATimeAreTheSameBits) {
  tests::Random random(1);
  const auto first = fp32_numbers(kColumns, random), second = fp32_numbers(kColumns, random);
  std::vector<double> strange = first;
  strange[1] = strange[257] = std::numeric_limits<double>::infinity();
  const auto make = [](bool exact, const std::vector<double>& numbers) {
    return exact ? Tracked(numbers, {kColumns}, kFp32) : with_error(numbers);
  };
  for (const bool exact_a : {true, false}) {
    for (const bool exact_b : {true, false}) {
      for (const bool product : {true, false}) {
        const auto of = [&](const std::vector<double>& numbers) {
          const Tracked a = make(exact_a, numbers), b = make(exact_b, second);
          return estimate_of(product ? a * b : a + b, Format::f32);
        };
        const Estimate right = of(strange), got = of(first);
        int inexact = 0;
        for (std::size_t i = 0; i < first.size(); ++i) {
          if (strange[i] != first[i]) continue;
          ASSERT_EQ(got.value[i], right.value[i]) << i;
          ASSERT_EQ(got.sigma[i], right.sigma[i]) << i;
          ASSERT_EQ(got.worst[i], right.worst[i]) << i;
          inexact += got.worst[i] > 0;
        }
        EXPECT_GT(inexact, kColumns / 2);
      }
    }
  }
}

TEST(TrackedBlocks, KnowExactElementsAmongOthers) {
  tests::Random random(2);
  std::vector<double> numbers = fp32_numbers(kColumns, random);
  numbers[7] = 3;
  const Tracked x(numbers, {kColumns}, kFp32);
  const Tracked product = x * x;
  for (std::int64_t i = 0; i < kColumns; ++i) {
    ASSERT_EQ(product.worst(i) == 0, i == 7) << i;
  }
}

TEST(TrackedBlocks, AllowNumbersThatAreFlushed) {
  std::vector<double> numbers(kColumns, 1.1);
  numbers[5] = 0x1p-100;
  const Tracked x(numbers, {kColumns}, kFp32);
  EXPECT_GE((with_error(numbers) * 0x1p-120 * 0x1p-10).worst(3), kLeastNormalF32);
  EXPECT_GE((x * (x * 0x1.1p-30)).worst(5), kLeastNormalF32);
}

}  // namespace tracked_blocks_test
}  // namespace plumb::reference
