// SPDX-License-Identifier: Apache-2.0
//
// The optimisations of tracked arrays (four elements at a time, blocks of rows) must not change any
// result.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "reference/tracked/tracked_node.h"
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

bool are_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Compares with arrays of one element, which use the loop for single elements. The long array has
// elements that are not finite or exact, and one block with an element that is flushed, which uses
// that loop too.
TEST(TrackedBlocks, FourElementsAtATimeAreTheSameBits) {
  tests::Random random(1);
  auto first = fp32_numbers(kColumns, random), second = fp32_numbers(kColumns, random);
  first[1] = std::numeric_limits<double>::infinity();
  first[2] = std::numeric_limits<double>::quiet_NaN();
  first[3] = 0;
  first[4] = second[4] = 2;
  first[257] = -100, second[257] = 0x1p-140;
  for (const bool exact_a : {true, false}) {
    for (const bool exact_b : {true, false}) {
      for (const bool product : {true, false}) {
        const auto of = [&](const std::vector<double>& x, const std::vector<double>& y) {
          const auto make = [](bool exact, const std::vector<double>& of_one) {
            const auto count = static_cast<std::int64_t>(of_one.size());
            return exact ? Tracked(of_one, {count}, kFp32) : with_error(of_one);
          };
          const Tracked a = make(exact_a, x), b = make(exact_b, y);
          return estimate_of(product ? a * b : a + b, Format::f32);
        };
        const Estimate got = of(first, second);
        int inexact = 0;
        for (std::size_t i = 0; i < first.size(); ++i) {
          const Estimate right = of({first[i]}, {second[i]});
          ASSERT_TRUE(are_same(got.value[i], right.value[0])) << i;
          ASSERT_EQ(got.sigma[i], right.sigma[0]) << i;
          ASSERT_EQ(got.worst[i], right.worst[0]) << i;
          inexact += got.worst[i] > 0;
        }
        EXPECT_GT(inexact, kColumns / 2);
      }
    }
  }
}

TEST(TrackedBlocks, FourNumbersThatAreStoredAreTheSameBits) {
  tests::Random random(4);
  const std::vector<double> numbers = fp32_numbers(kColumns, random);
  for (const Format format : {Format::f32, Format::tf32, Format::bf16}) {
    for (const bool exact : {true, false}) {
      const auto stored = [&](const std::vector<double>& of) {
        const Tracked x(of, {static_cast<std::int64_t>(of.size())}, kFp32);
        return rounded(exact ? x : exp(x), format);
      };
      const Tracked all = stored(numbers);
      int uncertain = 0;
      for (std::int64_t i = 0; i < kColumns; ++i) {
        const Tracked one = stored({numbers[static_cast<std::size_t>(i)]});
        ASSERT_EQ(all.centres()[static_cast<std::size_t>(i)], one.centres()[0]) << i;
        ASSERT_EQ(all.sigma(i), one.sigma(0)) << i;
        ASSERT_EQ(all.worst(i), one.worst(0)) << i;
        uncertain += one.worst(0) > 0;
      }
      EXPECT_EQ(uncertain > 0, !exact && format != Format::bf16);
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

Tracked norm(const std::vector<double>& x, std::int64_t begin, std::int64_t end, bool stored) {
  const auto at = [&](std::int64_t row) {
    return x.begin() + static_cast<std::ptrdiff_t>(row * kColumns);
  };
  const Tracked rows({at(begin), at(end)}, {end - begin, kColumns}, kFp32);
  Tracked scaled = rows * rsqrt(mean(rows * rows, 1) + 1e-6);
  return stored ? rounded(std::move(scaled), Format::bf16) : scaled;
}

TEST(TrackedBlocks, OfNoRowsHaveColumns) {
  const Estimate none = estimate_by_blocks(
      0, 3, Format::bf16,
      [](std::int64_t begin, std::int64_t end) { return norm({}, begin, end, true); });
  EXPECT_EQ(none.rows, 0);
  EXPECT_EQ(none.columns, kColumns);
  EXPECT_TRUE(none.value.empty());
}

TEST(TrackedBlocks, OfRowsAreTheWhole) {
  tests::Random random(3);
  constexpr std::int64_t kRows = 11;
  const auto x = fp32_numbers(kRows * kColumns, random);
  for (const bool stored : {false, true}) {
    const Estimate whole = estimate_of(norm(x, 0, kRows, stored), Format::bf16);
    const Estimate blocks = estimate_by_blocks(
        kRows, 3, Format::bf16,
        [&](std::int64_t begin, std::int64_t end) { return norm(x, begin, end, stored); });
    ASSERT_EQ(blocks.rows, whole.rows);
    ASSERT_EQ(blocks.columns, whole.columns);
    EXPECT_EQ(blocks.value, whole.value);
    EXPECT_EQ(blocks.sigma, whole.sigma);
    EXPECT_EQ(blocks.worst, whole.worst);
    EXPECT_EQ(blocks.shift, whole.shift);
    EXPECT_EQ(blocks.shift.empty(), !stored);
    EXPECT_EQ(blocks.row_mean_sigma, whole.row_mean_sigma);
    EXPECT_EQ(blocks.row_systematic, whole.row_systematic);
    EXPECT_EQ(blocks.row_concentration, whole.row_concentration);
    EXPECT_EQ(blocks.row_factor, whole.row_factor);
  }
}

TEST(TrackedBlocks, OfOtherSizesAreRefused) {
  const auto of = [](std::int64_t columns_of_last) {
    return [=](std::int64_t begin, std::int64_t) {
      const std::int64_t columns = begin == 2 ? columns_of_last : 4;
      return Tracked(std::vector<double>(static_cast<std::size_t>(columns)), {1, columns}, kFp32);
    };
  };
  EXPECT_EQ(estimate_by_blocks(3, 1, Format::f32, of(4)).columns, 4);
  EXPECT_THROW(estimate_by_blocks(3, 1, Format::f32, of(5)), std::invalid_argument);
  EXPECT_THROW(estimate_by_blocks(3, 2, Format::f32, of(4)), std::invalid_argument);
  EXPECT_THROW(estimate_by_blocks(3, 0, Format::f32, of(4)), std::invalid_argument);
  EXPECT_THROW(estimate_by_blocks(0, 1, Format::f32, of(4)), std::invalid_argument);
}

// The errors come from rows 1 and 2 of an estimate of three rows.
TEST(TrackedBlocks, TakeErrorsThatWereDerivedByHand) {
  Estimate sums;
  sums.resize(3, 2);
  sums.sigma = {9, 9, 1, 2, 3, 4};
  sums.worst = {9, 9, 10, 20, 30, 40};
  sums.row_systematic = {9, 0.5, 0.25};
  sums.shift = {9, 9, 0, 0, 0, 0.125};
  const Tracked a = with_errors(Tracked({5, 6, 7, 8}, {2, 2}, Numerics{}), sums, 1);
  EXPECT_EQ(a.values(), (std::vector<double>{5, 6, 7, 8}));
  EXPECT_EQ(a.centres(), (std::vector<double>{5, 6, 7, 8.125}));
  EXPECT_EQ(a.sigma(1), 2);
  EXPECT_EQ(a.worst(3), 40);
  EXPECT_EQ(a.node()->one_sided(2), 0.25);
  EXPECT_NEAR(sum(a, 1).sigma(0), std::hypot(1, 2), 1e-6);
  EXPECT_THROW(with_errors(a, sums, 2), std::invalid_argument);
}

}  // namespace tracked_blocks_test
}  // namespace plumb::reference
