// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "diagnosis/diagnosis.h"

namespace plumb::cases {

namespace match_test {

HostTensor integers(const std::vector<std::int32_t>& values, std::int64_t columns) {
  const auto count = static_cast<std::int64_t>(values.size());
  HostTensor tensor({.name = "t", .dtype = Dtype::i32, .shape = {count / columns, columns}});
  std::copy(values.begin(), values.end(), tensor.data<std::int32_t>());
  return tensor;
}

Match of(const std::vector<std::int32_t>& observed, const std::vector<std::int32_t>& right,
         const std::vector<std::int32_t>& hypothesis) {
  constexpr std::int64_t kColumns = 4;
  return match(integers(observed, kColumns), integers(right, kColumns),
               integers(hypothesis, kColumns), Closeness::bits);
}

TEST(Match, CountsWhatIsExplainedAndWhatIsInvented) {
  const Match some = of({9, 8, 7, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7},  //
                        {9, 8, 2, 3, 4, 5, 6, 1});
  EXPECT_EQ(some.wrong, 3);
  EXPECT_EQ(some.explained, 2);
  EXPECT_EQ(some.invented, 1);
  EXPECT_EQ(some.score(), 0.5);
  EXPECT_TRUE(some.is_weak()) << "three values";
  EXPECT_FALSE(some.is_exact());
}

TEST(Match, IsOneForTheVeryValues) {
  const std::vector<std::int32_t> right{0, 1, 2, 3, 4, 5, 6, 7}, wrong{9, 8, 7, 6, 4, 5, 6, 7};
  EXPECT_EQ(of(wrong, right, wrong).score(), 1);
  EXPECT_TRUE(of(wrong, right, wrong).is_exact());
  EXPECT_FALSE(of(wrong, right, wrong).is_weak());
  EXPECT_EQ(of(wrong, right, right).score(), 0) << "no fault explains no fault";
}

// If the wrong result is all zeros, any hypothesis that has zeros agrees with it by chance.
TEST(Match, TakesOffWhatTheRowBesideWouldExplain) {
  const std::vector<std::int32_t> right{1, 2, 3, 4, 5, 6, 7, 8}, zero{0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_TRUE(of(zero, right, zero).is_weak());
  const std::vector<std::int32_t> half{0, 0, 0, 0, 0, 0, 7, 8}, less{0, 0, 0, 4, 0, 0, 7, 8};
  EXPECT_EQ(of(half, right, half).by_chance, 4);
  EXPECT_LT(of(half, right, less).score(), 0.8);
}

HostTensor floats(const std::vector<float>& values) {
  HostTensor tensor(
      {.name = "t", .dtype = Dtype::bf16, .shape = {1, static_cast<std::int64_t>(values.size())}});
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.data<std::uint16_t>()[i] =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16);
  }
  return tensor;
}

TEST(Match, ForgivesAFewUnitsInTheLastPlaceWhereDevicesDiffer) {
  const HostTensor right = floats({1, 2, 4, 8}), near = floats({1.0078125F, 2, 4, 8});
  const HostTensor far = floats({1.5F, 2, 4, 8});
  EXPECT_EQ(match(near, right, right, Closeness::bits).wrong, 1);
  EXPECT_EQ(match(near, right, right, Closeness::ulps).wrong, 0);
  EXPECT_EQ(match(far, right, right, Closeness::ulps).wrong, 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(match(floats({nan, 2, 4, 8}), right, floats({nan, 2, 4, 8}), Closeness::ulps).explained,
            1);
}

TEST(Diagnosis, NamesTheClosestFaultIfTheEvidenceIsTooLittle) {
  Diagnosis diagnosis;
  EXPECT_EQ(text_of(diagnosis), "matches no fault of the library");
  diagnosis.next = Explanation{"truncated", "", {.wrong = 100, .explained = 47}};
  EXPECT_EQ(
      text_of(diagnosis),
      "matches no fault of the library; closest fault: truncated (explains 47 %, too little)");
  diagnosis.next->match = {.wrong = 100, .explained = 100, .invented = 7};
  EXPECT_EQ(text_of(diagnosis),
            "matches no fault of the library; closest fault: truncated (explains every wrong "
            "value, but 7 right values would be wrong too)");
  diagnosis.next->match = {.wrong = 1, .explained = 1};
  EXPECT_EQ(text_of(diagnosis),
            "matches no fault of the library; closest fault: truncated (would look the same, but "
            "the evidence is too little)");
}

}  // namespace match_test

}  // namespace plumb::cases
