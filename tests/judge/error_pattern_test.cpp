// SPDX-License-Identifier: Apache-2.0
//
// Provokes the sentences that describe wrong rows.
#include "cases/judge/error_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases/judge/judge.h"
#include "tests/support/random.h"

namespace plumb::cases {
namespace error_pattern_test {

constexpr std::int64_t kRows = 12;
constexpr std::int64_t kColumns = 64;
constexpr std::uint8_t kPoison = 0xA5;

reference::Estimate random_rows(std::uint64_t seed) {
  reference::Estimate estimate;
  estimate.output = reference::Format::f32;
  estimate.resize(kRows, kColumns);
  tests::Random random(seed);
  for (double& value : estimate.value) value = static_cast<float>(random.normal());
  return estimate;
}

HostTensor right_result(const reference::Estimate& estimate) {
  HostTensor got({.name = "out", .dtype = Dtype::f32, .shape = {kRows, kColumns}});
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    got.data<float>()[i] = static_cast<float>(estimate.value[i]);
  }
  return got;
}

HostTensor with(Clues clues, const HostTensor& got) {
  TensorSpec spec = got.spec();
  spec.clues = std::make_shared<const Clues>(std::move(clues));
  return got.alias(std::move(spec));
}

std::string pattern_of(const std::function<void(HostTensor& got)>& spoil) {
  const reference::Estimate estimate = random_rows(1);
  HostTensor got = right_result(estimate);
  spoil(got);
  Clues clues{.poison = kPoison};
  clues.earlier.push_back({"step 2", {}});
  clues.earlier.back().stored.add(right_result(random_rows(2)));
  return judge_floats(with(std::move(clues), got), estimate, {}, {}).pattern;
}

void for_row(HostTensor& got, std::int64_t row, const std::function<float(float)>& change) {
  for (std::int64_t c = 0; c < kColumns; ++c)
    got.row<float>(row)[c] = change(got.row<float>(row)[c]);
}

TEST(Diagnose, NamesRowsThatWereNeverWritten) {
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              for (const int r : {3, 5}) {
                std::memset(got.row<float>(r), kPoison, kColumns * sizeof(float));
              }
            }),
            "each wrong row was never written (still holds plumb's poison)");
}

TEST(Diagnose, NamesColumnsThatWereNeverWritten) {
  EXPECT_EQ(
      pattern_of([](HostTensor& got) {
        for (const int r : {3, 5}) {
          std::memset(got.row<float>(r) + 60, kPoison, 4 * sizeof(float));
        }
      }),
      "every wrong element was never written (still holds plumb's poison); only columns from 60 on "
      "are wrong");
}

TEST(Diagnose, CountsElementsThatWereNeverWrittenAmongOthers) {
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              std::memset(got.row<float>(3) + 10, kPoison, 2 * sizeof(float));
              for (int c = 20; c < 25; ++c) got.row<float>(3)[c] += static_cast<float>(c);
            }),
            "2 of 7 wrong elements were never written (still holds plumb's poison)");
}

// The poison byte may be a result of an op that stores bytes, so the sentence does not say "never
// written".
TEST(Diagnose, ABytesPoisonIsNoProof) {
  TensorSpec spec{.name = "codes", .dtype = Dtype::u8, .shape = {4, 8}, .role = Role::output};
  spec.clues = std::make_shared<const Clues>(Clues{.poison = 0x7b});
  HostTensor got(std::move(spec));
  std::vector<std::int64_t> expected(32);
  for (int i = 0; i < 32; ++i) got.data<std::uint8_t>()[i] = 0x7b;
  for (int i = 0; i < 32; ++i) expected[i] = i;
  EXPECT_EQ(judge_exact(got, expected, {}).pattern, "each wrong row is 123, as before the launch");
}

TEST(Diagnose, NamesNanRows) {
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              for_row(got, 4, [](float) { return std::numeric_limits<float>::quiet_NaN(); });
            }),
            "each wrong row is NaN");
}

TEST(Diagnose, NamesZeroRows) {
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              for (const int r : {10, 11}) for_row(got, r, [](float) { return 0.0f; });
            }),
            "each wrong row is zero; all rows from 10 on are wrong, none before");
}

// Values of bf16 that are cut off, and the same values with one that is a step too large.
TEST(Diagnose, NamesElementsThatAreCutOff) {
  reference::Estimate estimate = random_rows(1);
  estimate.output = reference::Format::bf16;
  HostTensor got({.name = "out", .dtype = Dtype::bf16, .shape = {kRows, kColumns}});
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const auto value = static_cast<float>(estimate.value[static_cast<std::size_t>(i)]);
    got.data<std::uint16_t>()[i] =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  }
  EXPECT_EQ(judge_floats(got, estimate, {}, {}).pattern,
            "each wrong row is cut off towards zero instead of rounded");
  for (std::int64_t r = 0; r < kRows; ++r) got.row<std::uint16_t>(r)[0] += 2;
  EXPECT_EQ(judge_floats(got, estimate, {}, {}).pattern.find("cut off"), std::string::npos);
}

TEST(Diagnose, NamesOneZeroElement) {
  EXPECT_EQ(pattern_of([](HostTensor& got) { got.row<float>(4)[9] = 0; }),
            "every wrong element is zero");
}

TEST(Diagnose, NamesSwappedRows) {
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              std::swap_ranges(got.row<float>(2), got.row<float>(3), got.row<float>(5));
            }),
            "row 2 holds the values of row 5, row 5 holds the values of row 2");
}

// Among rows of one scale, one wrong row that equals another row proves nothing. Eleven such rows
// are no accident.
TEST(Diagnose, RowsThatHaveEqualsAreNamedOnlyIfThereAreMany) {
  constexpr std::int64_t kScales = 24;
  HostTensor got({.name = "scales", .dtype = Dtype::u8, .shape = {kScales, 1}});
  std::vector<std::int64_t> expected(kScales, 0x70);
  for (std::size_t row = 0; row < 3; ++row) expected[7 * row] = 0x78 + static_cast<int>(row);
  expected[1] = 0x78;
  std::copy(expected.begin(), expected.end(), got.data<std::uint8_t>());
  got.data<std::uint8_t>()[7] = 0x78;
  EXPECT_EQ(judge_exact(got, expected, {}).pattern.find("holds the values"), std::string::npos);
  for (std::int64_t row = 0; row < kScales; ++row)
    expected[static_cast<std::size_t>(row)] = row < 12 ? row : 12 + row % 6;
  std::copy(expected.begin(), expected.end(), got.data<std::uint8_t>());
  std::copy_n(expected.begin(), 11, got.data<std::uint8_t>() + 1);
  EXPECT_EQ(judge_exact(got, expected, {}).pattern,
            "each wrong row: row r holds the values of row r - 1");
}

TEST(Diagnose, NamesShiftedRows) {
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              std::memmove(got.row<float>(4), got.row<float>(3), 7 * kColumns * sizeof(float));
            }),
            "each wrong row: row r holds the values of row r - 1");
}

TEST(Diagnose, NamesAnEarlierStep) {
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              const HostTensor stale = right_result(random_rows(2));
              std::memcpy(got.row<float>(7), stale.row<float>(7), kColumns * sizeof(float));
            }),
            "each wrong row holds the result of step 2");
}

TEST(Diagnose, NamesAFactor) {
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              for (const int r : {1, 8}) for_row(got, r, [](float x) { return x / 2; });
            }),
            "each wrong row is 0.5 × the expected row");
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              for (const int r : {1, 8}) for_row(got, r, [](float x) { return x * 1.0004f; });
            }),
            "each wrong row is 1.0004 × the expected row");
  EXPECT_EQ(pattern_of([](HostTensor& got) {
              for (const int r : {1, 8}) {
                for_row(got, r, [r](float x) { return x * static_cast<float>(r + 1); });
              }
            }),
            "each wrong row is a multiple of the expected row, with factors from 2 to 9");
}

TEST(Diagnose, SaysWhichColumnsAreWrongWhenTheirValuesFitNothing) {
  tests::Random random(3);
  EXPECT_EQ(pattern_of([&](HostTensor& got) {
              for (const int r : {1, 8}) {
                for (int c = 56; c < kColumns; ++c) {
                  got.row<float>(r)[c] = static_cast<float>(random.normal());
                }
              }
            }),
            "only columns from 56 on are wrong");
}

TEST(Diagnose, SaysNothingWhenNothingFits) {
  tests::Random random(3);
  EXPECT_EQ(pattern_of([&](HostTensor& got) {
              for (const int r : {1, 8}) {
                for_row(got, r, [&](float) { return static_cast<float>(random.normal()); });
              }
            }),
            "");
}

// Top-k rows: indices ascend by 3, no two rows are equal, and the last four indices are padding
// (-1).
std::vector<std::int64_t> index_rows() {
  std::vector<std::int64_t> expected;
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 0; c < kColumns; ++c) expected.push_back(c < 60 ? 3 * c + 1000 * r : -1);
  }
  return expected;
}

std::string index_pattern_of(const std::function<void(HostTensor& got)>& spoil) {
  const std::vector<std::int64_t> expected = index_rows();
  HostTensor got({.name = "indices", .dtype = Dtype::i32, .shape = {kRows, kColumns}});
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    got.data<std::int32_t>()[i] = static_cast<std::int32_t>(expected[i]);
  }
  spoil(got);
  constexpr std::int32_t kStarts[kRows] = {0, 0, 0, 0, 100, 100, 300, 300, 300, 700, 700, 700};
  HostTensor starts({.name = "row_starts", .dtype = Dtype::i32, .shape = {kRows}});
  std::copy(std::begin(kStarts), std::end(kStarts), starts.data<std::int32_t>());
  Clues clues{.poison = kPoison};
  clues.offsets.push_back(starts);
  return judge_exact(with(std::move(clues), got), expected, {}).pattern;
}

void add_to_indices(HostTensor& got, std::int64_t row, std::int32_t offset) {
  for (int c = 0; c < 60; ++c) got.row<std::int32_t>(row)[c] += offset;
}

TEST(Diagnose, NamesAnOffsetByAnArrayOfTheCall) {
  EXPECT_EQ(index_pattern_of([](HostTensor& got) {
              add_to_indices(got, 4, 100);
              add_to_indices(got, 6, 300);
            }),
            "every wrong element is too large by row_starts[row] (100 in row 4)");
}

TEST(Diagnose, NamesAnOffset) {
  EXPECT_EQ(index_pattern_of([](HostTensor& got) {
              add_to_indices(got, 4, -1);
              add_to_indices(got, 6, -1);
            }),
            "every wrong element is too small by 1");
  EXPECT_EQ(index_pattern_of([](HostTensor& got) {
              add_to_indices(got, 4, 5);
              add_to_indices(got, 6, 7);
            }),
            "each wrong row is off by a constant that depends on the row (5 in row 4, 7 in row 6)");
}

TEST(Diagnose, NamesPaddingOfAnotherValue) {
  EXPECT_EQ(index_pattern_of([](HostTensor& got) {
              for (int r = 0; r < kRows; ++r) {
                for (int c = 60; c < kColumns; ++c) got.row<std::int32_t>(r)[c] = 0;
              }
            }),
            "every wrong element is 0 where -1 is expected; only columns from 60 on are wrong");
}

TEST(Diagnose, NamesAnotherOrder) {
  EXPECT_EQ(index_pattern_of([](HostTensor& got) {
              std::swap(got.row<std::int32_t>(4)[3], got.row<std::int32_t>(4)[50]);
            }),
            "each wrong row holds the right values in another order");
}

TEST(Diagnose, NamesDuplicates) {
  EXPECT_EQ(
      index_pattern_of([](HostTensor& got) {
        got.row<std::int32_t>(4)[3] = got.row<std::int32_t>(4)[50];
        got.row<std::int32_t>(4)[5] = got.row<std::int32_t>(4)[51];
      }),
      "each wrong row holds a value twice, although all expected values differ (row 4: 4150)");
}

}  // namespace error_pattern_test
}  // namespace plumb::cases
