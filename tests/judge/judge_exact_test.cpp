// SPDX-License-Identifier: Apache-2.0
//
// The exact verdicts on integers and on bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "cases/judge/judge.h"

namespace plumb::cases {
namespace judge_exact_test {

HostTensor integers(Dtype dtype, std::vector<std::int64_t> shape,
                    const std::vector<std::int64_t>& values) {
  HostTensor tensor({.name = "indices", .dtype = dtype, .shape = std::move(shape)});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == Dtype::i32) tensor.data<std::int32_t>()[i] = static_cast<std::int32_t>(values[i]);
    if (dtype == Dtype::i64) tensor.data<std::int64_t>()[i] = values[i];
    if (dtype == Dtype::u8) tensor.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(values[i]);
  }
  return tensor;
}

std::vector<std::int64_t> counted(std::int64_t count) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i);
  return values;
}

TEST(JudgeExact, NamesWrongRowsAndTheFirstOfThem) {
  HostTensor got = integers(Dtype::i32, {7, 4}, counted(28));
  EXPECT_TRUE(judge_exact(got, counted(28), {}).passed());
  for (int i = 12; i < 28; ++i) got.data<std::int32_t>()[i] += 4096;
  const TensorReport report = judge_exact(got, counted(28), {});
  EXPECT_EQ(report.wrong_rows, (std::vector<std::int64_t>{3, 4, 5, 6}));
  EXPECT_EQ(report.wrong_elements, 16);
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_EQ(report.failures[0],
            "indices: 4 of 7 rows (rows 3-6) wrong; row 3 differs in 4 of 4 places (first [3, 0]: "
            "expected 12, "
            "got 4108)");
}

TEST(JudgeExact, SeesTheLastBitOfALongInteger) {
  const std::int64_t large = (std::int64_t{1} << 62) + 1;  // not representable as a double
  const HostTensor got = integers(Dtype::i64, {1, 1}, {large});
  EXPECT_TRUE(judge_exact(got, {large}, {}).passed());
  EXPECT_FALSE(judge_exact(got, {large - 1}, {}).passed());
}

TEST(JudgeExact, DoesNotLookAtRowsThatAreNotPromised) {
  HostTensor got = integers(Dtype::u8, {3, 2}, counted(6));
  got.data<std::uint8_t>()[5] = 77;
  const TensorReport report = judge_exact(got, counted(6), {true, true, false});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.rows_compared, 2);
  EXPECT_EQ(report.elements_compared, 4);
  EXPECT_EQ(report.zero_share, 0.25);
  EXPECT_FALSE(judge_exact(got, counted(6), {true, true, true}).passed());
}

TEST(JudgeExact, SkipsTheGapsBetweenRows) {
  HostTensor got({.name = "strided", .dtype = Dtype::i32, .shape = {2, 2}, .strides = {5, 1}});
  EXPECT_EQ(got.extent(), 7);
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 2; ++c) got.row<std::int32_t>(r)[c] = 2 * r + c;
  }
  got.data<std::int32_t>()[3] = -1;
  EXPECT_TRUE(judge_exact(got, counted(4), {}).passed());
}

TEST(JudgeExact, RefusesWhatItCannotCompare) {
  const HostTensor got = integers(Dtype::i32, {2, 2}, counted(4));
  EXPECT_THROW(judge_exact(got, counted(5), {}), std::invalid_argument);
  EXPECT_THROW(judge_exact(got, counted(4), {true}), std::invalid_argument);
  const HostTensor floats({.name = "out", .dtype = Dtype::f32, .shape = {1, 1}});
  EXPECT_THROW(judge_exact(floats, {0}, {}), std::invalid_argument);
}

TEST(JudgeExact, PassesAnEmptyTensorWithNothingCompared) {
  const TensorReport report = judge_exact(integers(Dtype::i32, {0, 4}, {}), {}, {});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.elements_compared, 0);
  EXPECT_EQ(report.observability, 0);
}

HostTensor floats(const std::vector<float>& values) {
  HostTensor tensor({.name = "out",
                     .dtype = Dtype::f32,
                     .shape = {static_cast<std::int64_t>(values.size()) / 2, 2}});
  std::memcpy(tensor.bytes().data(), values.data(), tensor.bytes().size());
  return tensor;
}

TEST(JudgeBits, DistinguishesTheZerosAndAcceptsEqualNans) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(judge_bits(floats({nan, 0}), floats({nan, 0}), {}, "differs").passed());
  EXPECT_FALSE(judge_bits(floats({nan, 0}), floats({nan, -0.0f}), {}, "differs").passed());
  EXPECT_FALSE(judge_bits(floats({nan, 0}), floats({-nan, 0}), {}, "differs").passed());
}

TEST(JudgeBits, NamesTheComparisonAndTheRows) {
  const float next = std::nextafter(3.0f, 4.0f);
  const TensorReport report =
      judge_bits(floats({1, 2, next, 4}), floats({1, 2, 3, 4}), {}, "replay differs from eager");
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_EQ(report.failures[0],
            "out: replay differs from eager in 1 of 2 rows (row 1); row 1 differs in 1 of 2 places "
            "(first [1, 0]: 3.000000238418579 against 3)");
  const TensorReport wrong =
      judge_right_bits(floats({1, 2, 5, 4}), floats({1, 2, 3, 4}), {}, "differs from the sum", {});
  EXPECT_NE(wrong.failures[0].find("(first [1, 0]: expected 3, got 5)"), std::string::npos);
  EXPECT_TRUE(
      judge_bits(floats({1, 2, next, 4}), floats({1, 2, 3, 4}), {true, false}, "differs").passed());
}

TEST(JudgeBits, DoesNotLookAtColumnsThatAreNotPromised) {
  const HostTensor expected = integers(Dtype::i32, {2, 4}, counted(8));
  const HostTensor got = integers(Dtype::i32, {2, 4}, {9, 1, 2, 9, 9, 9, 9, 9});
  const TensorReport report = judge_bits(got, expected, {}, "this", {{1, 3}, {2, 2}});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.elements_compared, 2);
  EXPECT_FALSE(judge_bits(got, expected, {}, "this", {{1, 4}, {2, 2}}).passed());
}

TEST(JudgeBits, RefusesTensorsOfDifferentShape) {
  EXPECT_THROW(judge_bits(floats({1, 2}), floats({1, 2, 3, 4}), {}, "differs"),
               std::invalid_argument);
}

TEST(RowRanges, JoinNeighboursAndAreCutShort) {
  EXPECT_EQ(row_ranges({3, 4, 5, 6, 9}), "3-6, 9");
  EXPECT_EQ(row_ranges({0, 2, 4, 6, 8, 10, 12}), "0, 2, 4, 6, 8, 10, …");
  EXPECT_EQ(row_ranges({}), "");
}

TEST(RowGroups, CoverAllRowsOnce) {
  const auto groups = groups_of(130, 64, "block");
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[2].begin, 128);
  EXPECT_EQ(groups[2].end, 130);
  EXPECT_EQ(groups[2].name, "block 2");
}

TEST(Tensor, NamesCoordinatesInEveryDimension) {
  const HostTensor tensor({.name = "out", .shape = {4, 3, 2}});
  EXPECT_EQ(tensor.rows(), 12);
  EXPECT_EQ(tensor.coordinates(7, 1), "[2, 1, 1]");
  EXPECT_EQ(tensor.row_offset(7), 14);
  const HostTensor empty({.name = "none", .shape = {4, 0}, .strides = {769, 1}});
  EXPECT_EQ(empty.row_offset(3), 0);
  const HostTensor scalar({.name = "count", .shape = {}});
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.coordinates(0, 0), "[]");
}

TEST(Tensor, RefusesStridesThatItCannotUse) {
  EXPECT_THROW(HostTensor({.name = "x", .shape = {2, 2}, .strides = {4, 2}}),
               std::invalid_argument);
  EXPECT_THROW(HostTensor({.name = "x", .shape = {2, 2}, .strides = {4}}), std::invalid_argument);
  EXPECT_THROW(HostTensor({.name = "x", .shape = {-1}}), std::invalid_argument);
}

}  // namespace judge_exact_test
}  // namespace plumb::cases
