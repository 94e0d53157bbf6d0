// SPDX-License-Identifier: Apache-2.0
//
// Tests the top-k reference against results computed by hand and against its definition, and the
// check of a selection against every kind of wrong selection.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "reference/bound.h"
#include "reference/top_k/top_k_per_row_decode.h"
#include "reference/top_k/top_k_per_row_prefill.h"

namespace plumb::reference {
namespace top_k_test {

using Indices = std::vector<std::int32_t>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();
const float kNan = std::bit_cast<float>(0x7fc00000u);
const float kNegativeNan = std::bit_cast<float>(0xffc00000u);

LogitWindow window_of(const std::vector<float>& logits) {
  return {logits.data(), 1, static_cast<std::int64_t>(logits.size())};
}

Indices select(const std::vector<float>& logits, std::int32_t k) {
  Indices indices(static_cast<std::size_t>(k), -7);
  select_top_k(window_of(logits), k, indices.data());
  return indices;
}

std::vector<SelectionError> errors_of(const std::vector<float>& logits, const Indices& indices) {
  std::vector<SelectionError> errors;
  const auto k = static_cast<std::int32_t>(indices.size());
  for (const WrongPlace& wrong : check_selection(window_of(logits), k, indices.data())) {
    errors.push_back(wrong.error);
  }
  return errors;
}

// Few different values, so that thresholds are tied.
std::vector<float> tied_logits(std::size_t length, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> logits(length);
  for (float& logit : logits) logit = static_cast<float>(generator() % 7) - 3.0f;
  return logits;
}

// The definition (4.1) for windows longer than k: indices are different and in range, and no key
// that was left out exceeds one that was taken.
bool legal_by_definition(const std::vector<float>& logits, const Indices& indices) {
  std::vector<bool> taken(logits.size());
  for (const std::int32_t i : indices) {
    if (i < 0 || i >= std::ssize(logits) || taken[i]) return false;
    taken[i] = true;
  }
  for (std::size_t in = 0; in < logits.size(); ++in) {
    for (std::size_t out = 0; out < logits.size(); ++out) {
      if (taken[in] && !taken[out] && order_key(logits[in]) < order_key(logits[out])) return false;
    }
  }
  return true;
}

TEST(TopKReference, KeysOrderBitPatternsFromNegativeNanToPositiveNan) {
  const std::vector<float> ascending = {kNegativeNan, -kInf,  -kMax, -1,   -1e-45f, -0.0f,
                                        0.0f,         1e-45f, 1,     kMax, kInf,    kNan};
  for (std::size_t i = 1; i < ascending.size(); ++i) {
    EXPECT_LT(order_key(ascending[i - 1]), order_key(ascending[i])) << "at " << i;
  }
}

TEST(TopKReference, PicksTheLargestThenTheSmallestIndex) {
  EXPECT_EQ(select({3, 9, 1, 9, 7}, 3), (Indices{1, 3, 4}));
  EXPECT_EQ(select({2, 2, 2, 2, 2}, 3), (Indices{0, 1, 2}));
  EXPECT_EQ(select({-1, -3, -2}, 1), (Indices{0}));
}

TEST(TopKReference, PositiveNanWinsAndNegativeNanLosesAndMinusZeroIsBelowZero) {
  EXPECT_EQ(select({1, kNan, kInf, -kInf, kNegativeNan}, 2), (Indices{1, 2}));
  EXPECT_EQ(select({kNegativeNan, -kInf, -1}, 2), (Indices{2, 1}));
  EXPECT_EQ(select({-0.0f, 0.0f, -0.0f}, 1), (Indices{1}));
}

TEST(TopKReference, AWindowOfOnlyMinusInfinityStillFillsEveryPlace) {
  EXPECT_EQ(select({-kInf, -kInf, -kInf}, 2), (Indices{0, 1}));
}

TEST(TopKReference, AWindowNotLongerThanKIsTheIdentityWhateverItsValues) {
  EXPECT_EQ(select({1, kNan, -kInf}, 3), (Indices{0, 1, 2}));
  EXPECT_EQ(select({1, kNan, -kInf}, 5), (Indices{0, 1, 2, -1, -1}));
  EXPECT_EQ(select({}, 2), (Indices{-1, -1}));
}

TEST(TopKReference, PrefillIndicesAreLocalToTheWindow) {
  const std::vector<float> logits = {9, 9, 1, 5, 3, 9,  //
                                     9, 4, 6, 2, 9, 9};
  const Indices starts = {2, 1}, ends = {5, 4};
  const TopKPerRowPrefill input{logits.data(), starts.data(), ends.data(), 2, 6, 6, 1, 2};
  EXPECT_EQ(top_k_per_row_prefill(input), (Indices{1, 2, 1, 0}));
}

TEST(TopKReference, PrefillFollowsRowAndColumnStrides) {
  const std::vector<float> logits = {1, 99, 5, 99, 3, 99, 99,  //
                                     4, 99, 6, 99, 7, 99, 99};
  const Indices starts = {0, 0}, ends = {3, 3};
  const TopKPerRowPrefill input{logits.data(), starts.data(), ends.data(), 2, 3, 7, 2, 2};
  EXPECT_EQ(top_k_per_row_prefill(input), (Indices{1, 2, 2, 1}));
}

TEST(TopKReference, PrefillEndInFrontOfStartIsAnEmptyWindow) {
  const std::vector<float> logits = {1, 2};
  const Indices starts = {2, 2}, ends = {2, 0};
  const TopKPerRowPrefill input{logits.data(), starts.data(), ends.data(), 2, 2, 0, 1, 1};
  EXPECT_EQ(top_k_per_row_prefill(input), (Indices{-1, -1}));
}

TEST(TopKReference, PrefillWindowOutsideTheColumnsIsRefused) {
  const std::vector<float> logits(4);
  for (const auto& [start, end] : {std::pair{-1, 2}, std::pair{1, 5}}) {
    const std::int32_t s = start, e = end;
    const TopKPerRowPrefill input{logits.data(), &s, &e, 1, 4, 4, 1, 1};
    EXPECT_THROW(top_k_per_row_prefill(input), std::invalid_argument);
  }
}

TEST(TopKReference, ShiftingAWindowAndItsSurroundingsLeavesLocalIndicesUnchanged) {
  const std::vector<float> window = tied_logits(200, 5);
  const Indices unshifted = select(window, 32);
  for (const std::int32_t shift : {1, 31, 64, 4096}) {
    std::vector<float> row(static_cast<std::size_t>(shift), kNan);
    row.insert(row.end(), window.begin(), window.end());
    row.insert(row.end(), 17, kInf);
    const std::int32_t start = shift, end = shift + 200;
    const std::int64_t columns = std::ssize(row);
    const TopKPerRowPrefill input{row.data(), &start, &end, 1, columns, columns, 1, 32};
    EXPECT_EQ(top_k_per_row_prefill(input), unshifted) << "shift " << shift;
  }
}

TEST(TopKReference, DecodeEndsFollowNextNFromOneLengthPerRequest) {
  const Indices lengths = {10, 3, 0};
  TopKPerRowDecode input;
  input.seq_lens = lengths.data();
  input.next_n = 4;
  const std::vector<std::int64_t> expected = {7, 8, 9, 10, 0, 1, 2, 3, 0, 0, 0, 0};
  for (std::int64_t row = 0; row < 12; ++row) EXPECT_EQ(row_end(input, row), expected[row]);
}

TEST(TopKReference, DecodeEndsAreGivenDirectlyByOneLengthPerRow) {
  const Indices lengths = {5, 9, 99, 99, -2, 1, 99, 99};  // two columns of a tensor with four
  TopKPerRowDecode input;
  input.seq_lens = lengths.data();
  input.next_n = 2;
  input.seq_lens_dims = 2;
  input.seq_lens_row_stride = 4;
  const std::vector<std::int64_t> expected = {5, 9, 0, 1};
  for (std::int64_t row = 0; row < 4; ++row) EXPECT_EQ(row_end(input, row), expected[row]);
}

TEST(TopKReference, DecodeSelectsFromTheStartOfEachRow) {
  const std::vector<float> logits = {1, 8, 5, 99,  //
                                     1, 2, 9, 99};
  const std::int32_t length = 3;
  TopKPerRowDecode input{logits.data(), &length, 2, 4, 4, 1, 1, 1, 2, 1};
  EXPECT_EQ(top_k_per_row_decode(input), (Indices{1, 2}));
}

TEST(TopKReference, AgreesWithItsDefinitionForManyTiedRows) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> logits = tied_logits(20 + seed % 50, seed);
    EXPECT_TRUE(legal_by_definition(logits, select(logits, 1 + seed % 19))) << "seed " << seed;
  }
}

TEST(TopKReference, GivesTheSameIndicesForAnyNumberOfThreads) {
  std::vector<std::vector<float>> rows;
  std::vector<LogitWindow> windows;
  for (std::uint32_t seed = 0; seed < 64; ++seed) rows.push_back(tied_logits(3000, seed));
  for (const std::vector<float>& row : rows) windows.push_back(window_of(row));
  set_thread_count(1);
  const Indices one = select_top_k(windows, 512);
  set_thread_count(7);
  EXPECT_EQ(select_top_k(windows, 512), one);
  set_thread_count(0);
}

// With k = 4 the winners are the last four of these eight logits.
const std::vector<float> kRamp = {0, 10, 20, 30, 40, 50, 60, 70};

TEST(TopKSelectionCheck, AcceptsAnyOrderAndAnyChoiceOfTies) {
  EXPECT_TRUE(errors_of(kRamp, {4, 5, 6, 7}).empty());
  EXPECT_TRUE(errors_of(kRamp, {6, 4, 7, 5}).empty());
  const std::vector<float> tied = {1, 5, 1, 1, 9, 1};
  for (const std::int32_t tie : {0, 2, 3, 5}) EXPECT_TRUE(errors_of(tied, {tie, 4, 1}).empty());
}

TEST(TopKSelectionCheck, AgreesWithTheDefinitionForRandomAnswers) {
  std::mt19937 generator(3);
  int legal = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const std::vector<float> logits = tied_logits(6, static_cast<std::uint32_t>(trial));
    Indices indices(3);
    for (std::int32_t& index : indices) index = static_cast<std::int32_t>(generator() % 7) - 1;
    const bool expected = legal_by_definition(logits, indices);
    legal += expected;
    ASSERT_EQ(errors_of(logits, indices).empty(), expected) << "trial " << trial;
  }
  EXPECT_GT(legal, 500);
}

TEST(TopKSelectionCheck, RejectsGlobalColumns) {
  const std::vector<float> row = {99, 99, 99, 99, 99, 0, 10, 20, 30, 40};
  const LogitWindow window{row.data() + 5, 1, 5};
  const Indices local = {3, 4}, global = {8, 9}, overlapping = {4, 8};
  EXPECT_TRUE(check_selection(window, 2, local.data()).empty());
  EXPECT_EQ(check_selection(window, 2, global.data()).size(), 2u);
  EXPECT_EQ(check_selection(window, 2, overlapping.data()).size(), 1u);
}

LogitWindow window_of(const std::vector<float>& logits, NanOrder order) {
  LogitWindow window = window_of(logits);
  window.nan_order = order;
  return window;
}

std::size_t wrong_places(const LogitWindow& window, const Indices& indices) {
  const auto k = static_cast<std::int32_t>(indices.size());
  return check_selection(window, k, indices.data()).size();
}

const std::vector<float> kBothNan = {1, kNegativeNan, kInf, kNan, -kInf};

TEST(TopKSelectionCheck, NanIsOnTopOrOrderedBySign) {
  const LogitWindow top = window_of(kBothNan, NanOrder::all_top);
  const LogitWindow by_sign = window_of(kBothNan, NanOrder::sign_ordered);
  EXPECT_EQ(wrong_places(top, {1, 3}), 0u);
  EXPECT_EQ(wrong_places(top, {3}), 0u);  // all NaN are equal
  EXPECT_EQ(wrong_places(top, {1}), 0u);
  EXPECT_EQ(wrong_places(top, {2, 3}), 1u);
  EXPECT_EQ(wrong_places(by_sign, {2, 3}), 0u);
  EXPECT_EQ(wrong_places(by_sign, {1, 3}), 1u);
  Indices indices(4);
  select_top_k(top, 4, indices.data());
  EXPECT_EQ(indices, (Indices{1, 3, 2, 0}));
}

TEST(TopKSelectionCheck, OfARowWithNanAsksForIndicesOfTheWindowWhereTheOrderIsUnspecified) {
  const LogitWindow open = window_of(kBothNan, NanOrder::unspecified);
  EXPECT_EQ(wrong_places(open, {4, 0}), 0u);
  EXPECT_EQ(wrong_places(open, {2, -1}), 0u);
  EXPECT_EQ(wrong_places(open, {4, 4}), 1u);
  EXPECT_EQ(wrong_places(open, {5, 0}), 1u);
  EXPECT_EQ(wrong_places(open, {-2, 0}), 1u);
  const std::vector<float> numbers = {1, 2, 3};
  EXPECT_EQ(wrong_places(window_of(numbers, NanOrder::unspecified), {0, 2}), 1u);
}

TEST(TopKSelectionCheck, NamesADuplicateAndTheWinnerThatItDisplaced) {
  const Indices indices = {4, 5, 5, 7};
  const auto wrong = check_selection(window_of(kRamp), 4, indices.data());
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].error, SelectionError::repeated);
  EXPECT_EQ(wrong[0].place, 2);
  EXPECT_EQ(wrong[0].expected, 6);
}

TEST(TopKSelectionCheck, NamesALoserAndTheWinnerThatItDisplaced) {
  const Indices indices = {4, 3, 6, 7};
  const auto wrong = check_selection(window_of(kRamp), 4, indices.data());
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].error, SelectionError::loser);
  EXPECT_EQ(wrong[0].expected, 5);
}

TEST(TopKSelectionCheck, RejectsATieTakenInsteadOfALargerKey) {
  EXPECT_EQ(errors_of({1, 1, 1, 9, 1}, {0, 1}), (std::vector{SelectionError::loser}));
  EXPECT_EQ(errors_of({0.0f, -0.0f, -0.0f}, {1}), (std::vector{SelectionError::loser}));
}

TEST(TopKSelectionCheck, RejectsHolesAndIndicesOutsideTheWindow) {
  EXPECT_EQ(errors_of(kRamp, {4, -1, 6, 7}), (std::vector{SelectionError::hole}));
  EXPECT_EQ(errors_of(kRamp, {4, 8, 6, 7}), (std::vector{SelectionError::out_of_range}));
  EXPECT_EQ(errors_of(kRamp, {4, -2, 6, 7}), (std::vector{SelectionError::out_of_range}));
}

TEST(TopKSelectionCheck, RejectsAnIdentityOutOfOrderAndATailThatIsNotMinusOne) {
  using enum SelectionError;
  EXPECT_EQ(errors_of({1, 2}, {1, 0, -1}), (std::vector{not_identity, not_identity}));
  EXPECT_EQ(errors_of({1, 2}, {0, 1, 0}), (std::vector{dirty_tail}));
  EXPECT_EQ(errors_of({1, 2}, {0, -1, -1}), (std::vector{hole}));
  EXPECT_EQ(errors_of({}, {0, -1}), (std::vector{dirty_tail}));
  EXPECT_TRUE(errors_of({1, 2}, {0, 1, -1}).empty());
}

TEST(TopKSelectionCheck, RejectsMinusOneForMinusInfinityInALongWindow) {
  EXPECT_EQ(errors_of({-kInf, -kInf, 3}, {2, -1}), (std::vector{SelectionError::hole}));
}

}  // namespace top_k_test
}  // namespace plumb::reference
