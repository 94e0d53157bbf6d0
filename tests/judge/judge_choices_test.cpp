// SPDX-License-Identifier: Apache-2.0
//
// The verdict on selections by computed scores: any order within the errors of the scores passes,
// other orders fail.
#include "cases/judge/judge_choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace plumb::cases {
namespace judge_choices_test {

using reference::ScoredChoices;
using Ids = std::vector<std::int32_t>;

constexpr double kSigma = 1e-3, kWorst = 6e-3;

// One row per list of scores. Every score has the same error size and an error source of its own.
ScoredChoices choices_of(const std::vector<std::vector<double>>& scores, std::int32_t k) {
  ScoredChoices choices;
  choices.k = k;
  const auto rows = std::ssize(scores), columns = std::ssize(scores.front());
  choices.experts.resize(rows, columns);
  choices.rule.assign(scores.size(), ScoredChoices::Rule::choose);
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    choices.experts.score.value[i] = scores[i / columns][i % columns];
    choices.experts.score.sigma[i] = kSigma;
    choices.experts.score.worst[i] = kWorst;
    choices.experts.identity[i] = static_cast<std::uint64_t>(i);
  }
  return choices;
}

// Three groups, of which two are kept. Group scores have the same errors as expert scores.
ScoredChoices grouped(const std::vector<double>& scores, const std::vector<double>& groups) {
  ScoredChoices choices = choices_of({scores}, 2);
  choices.group = choices_of({groups}, 2).experts;
  choices.groups = std::ssize(groups);
  choices.kept = 2;
  return choices;
}

TensorReport judge(const ScoredChoices& choices, const Ids& ids) {
  HostTensor tensor({.name = "ids", .dtype = Dtype::i32, .shape = {choices.rows(), choices.k}});
  std::copy(ids.begin(), ids.end(), tensor.data<std::int32_t>());
  return judge_choices(tensor, choices);
}

TEST(JudgeSelection, TakesTheExactChoice) {
  const auto choices = choices_of({{0.1, 0.9, 0.5, 0.3}}, 2);
  EXPECT_EQ(choices.exact(0), (Ids{1, 2}));
  const TensorReport report = judge(choices, {1, 2});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.flips, 0);
}

TEST(JudgeSelection, NamesWhatStandsWhereAnotherBelongs) {
  const auto choices = choices_of({{0.1, 0.9, 0.5, 0.3}, {0.1, 0.9, 0.5, 0.3}}, 2);
  const TensorReport wrong_order = judge(choices, {1, 2, 2, 1});
  ASSERT_EQ(wrong_order.failures.size(), 1U);
  EXPECT_EQ(
      wrong_order.failures[0],
      "ids: 1 of 2 rows (row 1) wrong; [1, 0] has 2 in front of 1: its score is smaller by 0.4, "
      "errors reach 0.012");
  EXPECT_EQ(wrong_order.wrong_rows, (std::vector<std::int64_t>{1}));
  const TensorReport left_out = judge(choices, {1, 3, 1, 2});
  ASSERT_EQ(left_out.failures.size(), 1U);
  EXPECT_EQ(
      left_out.failures[0],
      "ids: 1 of 2 rows (row 0) wrong; [0, 1] has 3 instead of 2: its score is smaller by 0.2, "
      "errors reach 0.012");
  EXPECT_EQ(left_out.worst->expected, 2);
  EXPECT_EQ(left_out.worst->got, 3);
}

TEST(JudgeSelection, LeavesScoresWithinTheirErrorsFree) {
  const auto choices = choices_of({{0.5, 0.501, 0.1, 0.4985}}, 2);
  EXPECT_TRUE(judge(choices, {1, 0}).passed());
  const TensorReport flipped = judge(choices, {0, 1});
  EXPECT_TRUE(flipped.passed());
  EXPECT_EQ(flipped.flips, 1);
  EXPECT_EQ(flipped.flip,
            "row 0: expert 0 before 1: its score is smaller by 0.001, errors reach 0.012");
  EXPECT_TRUE(judge(choices, {3, 1}).passed());
  EXPECT_FALSE(judge(choices, {1, 2}).passed());
}

TEST(JudgeSelection, GivesCertainTiesToTheSmallerId) {
  auto choices = choices_of({{0.5, 0.2, 0.5, 0.1}}, 2);
  EXPECT_TRUE(judge(choices, {2, 0}).passed()) << "made of different bits";
  choices.experts.identity[2] = choices.experts.identity[0];
  EXPECT_TRUE(judge(choices, {0, 2}).passed());
  const TensorReport report = judge(choices, {2, 0});
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_NE(report.failures[0].find("2 in front of 0: equal scores, the smaller id comes first"),
            std::string::npos);
}

TEST(JudgeSelection, LeavesTiesFreeWhereTheContractDoes) {
  auto choices = choices_of({{0.5, 0.2, 0.5, 0.9, 0.5}}, 3);
  for (const int equal : {2, 4}) choices.experts.identity[equal] = choices.experts.identity[0];
  EXPECT_FALSE(judge(choices, {3, 4, 2}).passed());
  choices.experts.free_ties = true;
  for (const Ids& ids : {Ids{3, 0, 2}, Ids{3, 4, 2}, Ids{3, 2, 4}}) {
    const TensorReport report = judge(choices, ids);
    EXPECT_TRUE(report.passed());
    EXPECT_EQ(report.flips, 0);
  }
  EXPECT_FALSE(judge(choices, {0, 3, 2}).passed()) << "the order is not free";
  EXPECT_FALSE(judge(choices, {3, 0, 1}).passed()) << "not one of the equal ones";
}

TEST(JudgeSelection, LeavesTheOrderFreeWhereTheContractDoes) {
  auto choices = choices_of({{0.1, 0.9, 0.5, 0.3}}, 3);
  choices.free_order = true;
  for (Ids ids : {Ids{1, 2, 3}, Ids{3, 1, 2}, Ids{3, 2, 1}}) {
    const TensorReport report = judge(choices, ids);
    EXPECT_TRUE(report.passed());
    EXPECT_EQ(report.flips, 0);
  }
  const TensorReport report = judge(choices, {3, 0, 1});
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_NE(report.failures[0].find("[0, 1] has 0 instead of 2"), std::string::npos);
  EXPECT_EQ(report.worst->expected, 2);
  EXPECT_EQ(report.worst->got, 0);
}

TEST(JudgeSelection, CountsChosenSetsThatDifferThoughTheOrderIsFree) {
  const double gap = 5 * std::sqrt(2.0) * kSigma;
  auto choices = choices_of(std::vector<std::vector<double>>(8, {0.5, 0.5 + gap, 0.9}), 2);
  choices.free_order = true;
  EXPECT_TRUE(judge(choices, {2, 0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 2, 1, 1, 2}).passed());
  EXPECT_FALSE(judge(choices, {2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 1, 1, 2}).passed());
}

TEST(JudgeSelection, LeavesEqualGroupsFreeWhereTheContractDoes) {
  auto choices = grouped({0.3, 0.6, 0.9, 0.05, 0.3, 0.6}, {0.9, 0.95, 0.9});
  choices.group.identity[2] = choices.group.identity[0];
  for (const auto& [a, b] : {std::pair{0, 4}, {1, 5}}) {
    choices.experts.identity[b] = choices.experts.identity[a];
  }
  EXPECT_FALSE(judge(choices, {2, 5}).passed());
  choices.experts.free_ties = choices.group.free_ties = true;
  for (const std::int32_t second : {1, 5}) {
    const TensorReport report = judge(choices, {2, second});
    EXPECT_TRUE(report.passed());
    EXPECT_EQ(report.flips, 0);
  }
  EXPECT_FALSE(judge(choices, {1, 5}).passed()) << "both of the two equal groups";
}

TEST(JudgeSelection, TakesScoresWithoutErrorForWhatTheyAre) {
  auto choices = choices_of({{0.5, 0.2, 0.5, 0.1}}, 1);
  choices.experts.score.worst.assign(4, 0);
  choices.experts.score.sigma.assign(4, 0);
  EXPECT_TRUE(judge(choices, {0}).passed());
  EXPECT_FALSE(judge(choices, {2}).passed());
}

TEST(JudgeSelection, RefusesWhatIsNoExpertAndRepetitions) {
  const auto choices = choices_of({{0.1, 0.9, 0.5, 0.3}}, 2);
  for (const Ids& ids : {Ids{1, 4}, Ids{-1, 1}, Ids{1, 1}}) {
    EXPECT_FALSE(judge(choices, ids).passed()) << ids[0] << " " << ids[1];
  }
  EXPECT_NE(judge(choices, {1, 1}).failures[0].find("[0, 1] has 1 a second time"),
            std::string::npos);
}

TEST(JudgeSelection, KnowsRowsWithoutAChoice) {
  auto choices = choices_of({{0.1, 0.9, 0.5}, {0.1, 0.9, 0.5}}, 2);
  choices.rule = {ScoredChoices::Rule::none, ScoredChoices::Rule::first_k};
  EXPECT_TRUE(judge(choices, {-1, -1, 0, 1}).passed());
  EXPECT_EQ(judge(choices, {1, 2, 1, 2}).wrong_rows, (std::vector<std::int64_t>{0, 1}));
}

TEST(JudgeSelection, CountsFlipsThatErrorsDoNotExplain) {
  // Scores five standard deviations of their difference apart: one row may flip, but not six of
  // eight.
  const double gap = 5 * std::sqrt(2.0) * kSigma;
  const std::vector<std::vector<double>> scores(8, {0.5, 0.5 + gap, 0.1});
  const Ids exact = {1, 1, 1, 1, 1, 1, 1, 1}, one = {0, 1, 1, 1, 1, 1, 1, 1},
            six = {0, 0, 0, 0, 0, 0, 1, 1};
  auto choices = choices_of(scores, 1);
  EXPECT_TRUE(judge(choices, exact).passed());
  EXPECT_TRUE(judge(choices, one).passed());
  const TensorReport report = judge(choices, six);
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_NE(report.failures[0].find("6 choices differ from the exact ones"), std::string::npos);
  // Structured errors are not random, so flips are not counted.
  choices.experts.score.structured = true;
  EXPECT_TRUE(judge(choices, six).passed());
}

TEST(JudgeSelection, AllowsAsManyFlipsAsTiesExplain) {
  const std::vector<std::vector<double>> scores(64, {0.5, 0.5, 0.1});
  Ids ids(64);
  for (int i = 0; i < 64; ++i) ids[i] = i % 2;
  EXPECT_TRUE(judge(choices_of(scores, 1), ids).passed());
}

TEST(JudgeSelection, KeepsToTheBestGroups) {
  const auto choices = grouped({0.1, 0.2, 0.9, 0.05, 0.5, 0.4}, {0.3, 0.95, 0.9});
  EXPECT_EQ(choices.exact(0), (Ids{2, 4}));
  EXPECT_TRUE(judge(choices, {2, 4}).passed());
  const TensorReport report = judge(choices, {2, 1});
  ASSERT_EQ(report.failures.size(), 1U);
  EXPECT_EQ(report.failures[0],
            "ids: 1 of 1 rows (row 0) wrong; [0, 1] has 1 (group 0), whose group is not among the "
            "best 2; "
            "instead of group 2: its score is smaller by 0.6, errors reach 0.012");
}

TEST(JudgeSelection, LetsGroupsWithinTheirErrorsChangePlaces) {
  // Groups 0 and 2 have equal scores: either may be the second group that is kept, but not both.
  const auto choices = grouped({0.3, 0.6, 0.9, 0.05, 0.5, 0.399}, {0.9, 0.95, 0.899});
  EXPECT_TRUE(judge(choices, {2, 1}).passed());
  const TensorReport other = judge(choices, {2, 4});
  EXPECT_TRUE(other.passed());
  EXPECT_EQ(other.flips, 1);
  EXPECT_FALSE(judge(choices, {1, 4}).passed());
  EXPECT_FALSE(judge(choices, {2, 5}).passed()) << "group 2, but not its best";
}

TEST(JudgeSelection, AnExactGroupTieGoesToTheSmallerGroup) {
  auto choices = grouped({0.3, 0.6, 0.9, 0.05, 0.3, 0.6}, {0.9, 0.95, 0.9});
  choices.group.identity[2] = choices.group.identity[0];
  EXPECT_TRUE(judge(choices, {2, 1}).passed());
  EXPECT_FALSE(judge(choices, {2, 5}).passed());
}

}  // namespace judge_choices_test
}  // namespace plumb::cases
