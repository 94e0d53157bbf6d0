// SPDX-License-Identifier: Apache-2.0
//
// Tests the router ops' references: results computed by hand from their definitions, and
// identities.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/router/grouped_topk.h"
#include "reference/router/hash_routing.h"
#include "reference/router/sqrt_softplus_topk.h"

namespace plumb::reference {
namespace router_test {

using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLn3 = 1.0986123F;  // sigmoid(ln 3) = 3/4, sigmoid(-ln 3) = 1/4

Logits one_token(const Floats& logits) {
  const auto experts = std::ssize(logits);
  return {logits.data(), false, 1, experts, experts};
}

// Four groups of two experts. Two groups are kept, each token gets two experts, and the scale is 2.
GroupedTopK four_groups(const Floats& logits, const Floats& bias) {
  GroupedTopK inputs;
  inputs.logits = one_token(logits);
  inputs.bias = bias.data();
  inputs.n_group = 4;
  inputs.topk_group = 2;
  inputs.topk = 2;
  inputs.scale = 2;
  return inputs;
}

TEST(GroupedTopK, ChoosesByBiasedScoresAndWeighsByUnbiasedOnes) {
  const Floats logits = {0,     0,     kLn3, -kLn3,
                         -kLn3, -kLn3, 0,    0};  // scores: 1/2 1/2 | 3/4 1/4 | 1/4 1/4 | 1/2 1/2
  const Floats bias = {0, 0, 0, 0, 1, 0.5, 0.125, 0};
  // Biased scores: 1/2 1/2 | 3/4 1/4 | 5/4 3/4 | 5/8 1/2. Group scores: 1, 1, 2, 9/8. So groups 2
  // and 3, experts 4 and 5 are chosen.
  const GroupedTopK inputs = four_groups(logits, bias);
  const ScoredChoices choices = grouped_topk_choices(inputs, {});
  EXPECT_EQ(choices.group.best(0, 4), (Ids{2, 3, 0, 1}));
  EXPECT_NEAR(choices.group.score.value[3], 1.125, 1e-7);
  const Ids ids = choices.exact(0);
  EXPECT_EQ(ids, (Ids{4, 5}));
  const Estimate weights = grouped_topk_weights(inputs, choices, ids.data(), {});
  EXPECT_NEAR(weights.value[0], 1, 1e-7);  // 2 * 1/4 / (1/4 + 1/4)
  EXPECT_NEAR(weights.value[1], 1, 1e-7);
  const Ids other = {2, 6};  // other experts that a device chose
  const Estimate of_others = grouped_topk_weights(inputs, choices, other.data(), {});
  EXPECT_NEAR(of_others.value[0], 2 * 0.75 / 1.25, 1e-7);
  EXPECT_NEAR(of_others.value[1], 2 * 0.5 / 1.25, 1e-7);
}

TEST(GroupedTopK, DoesNotDivideUnlessAsked) {
  const Floats logits = {0, 0, kLn3, -kLn3, 0, 0, 0, 0}, bias(8, 0);
  GroupedTopK inputs = four_groups(logits, bias);
  inputs.renormalize = false;
  const ScoredChoices choices = grouped_topk_choices(inputs, {});
  const Ids ids = {2, 0};
  const Estimate weights = grouped_topk_weights(inputs, choices, ids.data(), {});
  EXPECT_NEAR(weights.value[0], 1.5, 1e-7);
  EXPECT_NEAR(weights.value[1], 1, 1e-7);
}

TEST(GroupedTopK, ASecondBestDecidesBetweenGroups) {
  const Floats logits(8, 0);  // all scores are 1/2
  const Floats bias = {1, -1, 0.25, 0.25, 0, 0, -1, -1};
  const ScoredChoices choices = grouped_topk_choices(four_groups(logits, bias), {});
  // Group scores: 3/2 - 1/2 = 1, 3/2, 1, -1. So group 1 comes first, then group 0 before group 2.
  EXPECT_EQ(choices.group.best(0, 2), (Ids{1, 0}));
  EXPECT_EQ(choices.exact(0), (Ids{0, 2}));
}

TEST(GroupedTopK, EqualGroupsAndExpertsAreCertainTies) {
  const Floats logits(8, 0.3F), bias = {0.5, 0.25, 0.5, 0.25, 0.5, 0.25, 0.5, 0.25};
  const ScoredChoices choices = grouped_topk_choices(four_groups(logits, bias), {});
  EXPECT_TRUE(choices.group.certainly_before(0, 0, 3));
  EXPECT_TRUE(choices.experts.certainly_before(0, 0, 2));
  EXPECT_FALSE(choices.experts.certainly_before(0, 2, 0));
  EXPECT_EQ(choices.exact(0), (Ids{0, 2}));
}

TEST(GroupedTopK, ANanLosesWhereAllIsGuardedAndElseLeavesTheRowFree) {
  const Floats logits = {0, 0, 0, 0, 0, 0, kNan, 1}, bias(8, 0);
  GroupedTopK inputs = four_groups(logits, bias);
  EXPECT_EQ(grouped_topk_choices(inputs, {}).rule[0], ScoredChoices::Rule::any_expert);
  inputs.nonfinite = Nonfinite::guard_all;
  // Group 3 has only one finite expert, so its score is -inf.
  EXPECT_EQ(grouped_topk_choices(inputs, {}).exact(0), (Ids{0, 1}));
}

TEST(GroupedTopK, AnInfiniteLogitIsChosenOrNot) {
  const Floats logits = {kInfinity, 0, 0, 0, kLn3, kLn3, -kInfinity, -kInfinity}, bias(8, 0);
  GroupedTopK inputs = four_groups(logits, bias);
  // Group scores: 3/2, 1, 3/2, 0.
  EXPECT_EQ(grouped_topk_choices(inputs, {}).exact(0), (Ids{0, 4}));
  inputs.nonfinite = Nonfinite::guard_choice_only;
  EXPECT_EQ(grouped_topk_choices(inputs, {}).exact(0), (Ids{4, 5}));
  inputs.nonfinite = Nonfinite::guard_all;  // group scores: -inf, 1, 3/2, -inf
  EXPECT_EQ(grouped_topk_choices(inputs, {}).exact(0), (Ids{4, 5}));
  EXPECT_EQ(grouped_topk_choices(inputs, {}).group.best(0, 2), (Ids{2, 1}));
}

TEST(GroupedTopK, WithTooFewFiniteExpertsInItsGroupsAGuardedChoiceIsFree) {
  const Floats logits(8, -kInfinity), bias(8, 0);
  GroupedTopK inputs = four_groups(logits, bias);
  EXPECT_EQ(grouped_topk_choices(inputs, {}).exact(0), (Ids{0, 1}));
  inputs.nonfinite = Nonfinite::guard_choice_only;
  const ScoredChoices choices = grouped_topk_choices(inputs, {});
  EXPECT_EQ(choices.rule[0], ScoredChoices::Rule::any_expert);
  const Ids repeated = {0, 0};
  EXPECT_EQ(grouped_topk_weights(inputs, choices, repeated.data(), {}).value[0], 0);
}

TEST(GroupedTopK, KnowsTheShapesOfTheSmallExpertKernel) {
  const auto small = [](std::int64_t experts, std::int32_t groups, std::int32_t kept,
                        std::int32_t k) {
    GroupedTopK inputs;
    inputs.logits.experts = experts;
    inputs.n_group = groups;
    inputs.topk_group = kept;
    inputs.topk = k;
    return has_small_experts(inputs);
  };
  EXPECT_TRUE(small(256, 8, 4, 8));
  EXPECT_FALSE(small(256, 8, 4, 9));
  EXPECT_FALSE(small(256, 8, 5, 8));
  EXPECT_FALSE(small(288, 9, 4, 8));
  EXPECT_FALSE(small(132, 4, 3, 8));
  EXPECT_TRUE(small(512, 1, 1, 8));
  EXPECT_TRUE(small(512, 1, 1, 22));
  EXPECT_FALSE(small(512, 1, 1, 9));
  EXPECT_FALSE(small(576, 1, 1, 8));
}

TEST(GroupedTopK, WithoutEnoughGroupsTakesTheFirstUnscaled) {
  const Floats logits = {0, 0, 0, kInfinity, kNan, 0, -kInfinity, -kInfinity}, bias(8, 0);
  GroupedTopK inputs = four_groups(logits, bias);
  inputs.nonfinite = Nonfinite::guard_all;
  const ScoredChoices choices = grouped_topk_choices(inputs, {});
  EXPECT_EQ(choices.rule[0], ScoredChoices::Rule::first_k);
  const Ids ids = choices.exact(0);
  EXPECT_EQ(ids, (Ids{0, 1}));
  const Estimate weights = grouped_topk_weights(inputs, choices, ids.data(), {});
  EXPECT_EQ(weights.value, (std::vector<double>{0.5, 0.5}));
}

TEST(GroupedTopK, RoundsToTheLogitsFormat) {
  // sigmoid(1) = 0.7310586 is 0.73046875 in bf16 (spacing 2^-8). Adding 0.0019 is less than half
  // the way to the next number, 0.734375; adding 0.002 is more.
  const std::vector<std::uint16_t> logits(8, encode_bf16(1.0F));
  const Floats bias = {0, 0.0019F, 0, 0, 0.002F, 0, 0, 0};
  GroupedTopK inputs = four_groups({}, bias);
  inputs.logits = {logits.data(), true, 1, 8, 8};
  inputs.in_logits_format = true;
  const ScoredChoices choices = grouped_topk_choices(inputs, {});
  EXPECT_EQ(choices.experts.score.value[0], 0.73046875);
  EXPECT_EQ(choices.experts.score.value[1], 0.73046875);
  EXPECT_EQ(choices.experts.score.worst[1], 0);
  EXPECT_EQ(choices.experts.score.value[4], 0.734375);
  // Group 2: 0.734375 + 0.73046875 = 1.46484375 is a tie in bf16 between 1.4609375 and 1.46875,
  // which is even.
  EXPECT_EQ(choices.group.score.value[2], 1.46875);
  EXPECT_EQ(choices.exact(0), (Ids{4, 0}));
}

SqrtSoftplusTopK softplus_inputs(const Floats& logits, const Floats& bias, std::int32_t topk) {
  SqrtSoftplusTopK inputs;
  inputs.logits = one_token(logits);
  inputs.bias = bias.data();
  inputs.topk = topk;
  inputs.scale = 1.5;
  return inputs;
}

TEST(SqrtSoftplusTopK, FollowsItsDefinition) {
  const Floats logits = {64, 0, 256, -1000, 25}, bias = {0, 20, 0, 0.5, 0};
  // Scores: 8, sqrt(ln 2), 16, 0, 5.
  const auto inputs = softplus_inputs(logits, bias, 3);
  const ScoredChoices choices = sqrt_softplus_topk_choices(inputs, {});
  const Ids ids = choices.exact(0);
  EXPECT_EQ(ids, (Ids{1, 2, 0}));
  const Estimate weights = sqrt_softplus_topk_weights(inputs, ids.data(), {});
  const double root = 0.8325546111576977, sum = root + 24;
  EXPECT_NEAR(weights.value[0], 1.5 * root / sum, 1e-15);
  EXPECT_NEAR(weights.value[1], 1.5 * 16 / sum, 1e-15);
  EXPECT_NEAR(weights.value[2], 1.5 * 8 / sum, 1e-15);
}

TEST(SqrtSoftplusTopK, VanishedScoresHaveTheWeightZero) {
  const Floats logits = {-1000, -kInfinity, -200}, bias = {0.25, 0.5, 0};
  const auto inputs = softplus_inputs(logits, bias, 2);
  const Ids ids = sqrt_softplus_topk_choices(inputs, {}).exact(0);
  EXPECT_EQ(ids, (Ids{1, 0}));
  const Estimate weights = sqrt_softplus_topk_weights(inputs, ids.data(), {});
  EXPECT_EQ(weights.value, (std::vector<double>{0, 0}));
  EXPECT_LT(weights.bound(0), 1e-30);
}

TEST(SqrtSoftplusTopK, ANanIsNothingAndInfinityWins) {
  const Floats logits = {kNan, -3, kInfinity, kNan}, bias = {-100, 0, 0, -100};
  auto inputs = softplus_inputs(logits, bias, 3);
  const Ids ids = sqrt_softplus_topk_choices(inputs, {}).exact(0);
  EXPECT_EQ(ids, (Ids{2, 1, 0}));
  const Estimate weights = sqrt_softplus_topk_weights(inputs, ids.data(), {});
  EXPECT_TRUE(std::isnan(weights.value[0]));
  EXPECT_EQ(weights.value[1], 0);
  inputs.renormalize = false;
  EXPECT_EQ(sqrt_softplus_topk_weights(inputs, ids.data(), {}).value[2], 0);  // weight of the NaN
  inputs.rules.nan_is_zero = false;
  EXPECT_EQ(sqrt_softplus_topk_choices(inputs, {}).rule[0], ScoredChoices::Rule::any_expert);
}

TEST(SqrtSoftplusTopK, ANanMayBeChosenByItsBiasOrLast) {
  const Floats logits = {kNan, 64, -1000}, bias = {1, 0, 0};  // choices: at most 1, 8, 0
  const ScoredChoices choices = sqrt_softplus_topk_choices(softplus_inputs(logits, bias, 2), {});
  EXPECT_TRUE(choices.experts.certainly_before(0, 1, 0));
  EXPECT_FALSE(choices.experts.certainly_before(0, 0, 2));
  EXPECT_FALSE(choices.experts.certainly_before(0, 2, 0));
}

TEST(SqrtSoftplusTopK, BelowMinus17OnlyALog1pTellsLogitsApart) {
  const Floats logits = {-20, -17, -80}, bias(3, 0);
  auto inputs = softplus_inputs(logits, bias, 2);
  EXPECT_EQ(sqrt_softplus_topk_choices(inputs, {}).exact(0), (Ids{0, 1}));
  EXPECT_TRUE(sqrt_softplus_topk_choices(inputs, {}).experts.certainly_before(0, 0, 1));
  const Ids ids = {1, 0};
  EXPECT_EQ(sqrt_softplus_topk_weights(inputs, ids.data(), {}).value[0], 0);
  inputs.rules.log1p = true;
  EXPECT_TRUE(sqrt_softplus_topk_choices(inputs, {}).experts.certainly_before(0, 1, 0));
  const Estimate weights = sqrt_softplus_topk_weights(inputs, ids.data(), {});
  EXPECT_NEAR(weights.value[1], 1.5 / (1 + std::exp(1.5)), 1e-7);
  EXPECT_LT(weights.bound(1), 1e-5);
}

TEST(SqrtSoftplusTopK, WithoutALinearBranchALargeLogitIsInfinite) {
  const Floats logits = {90, 1e4F, 3e38F, 64}, bias = {0, 5, 0, 0};
  auto inputs = softplus_inputs(logits, bias, 3);
  EXPECT_EQ(sqrt_softplus_topk_choices(inputs, {}).exact(0), (Ids{2, 1, 0}));
  inputs.rules.linear_above_20 = false;
  const ScoredChoices choices = sqrt_softplus_topk_choices(inputs, {});
  EXPECT_EQ(choices.exact(0), (Ids{0, 1, 2}));
  EXPECT_TRUE(choices.experts.certainly_before(0, 0, 2));
  EXPECT_NEAR(choices.experts.score.value[3], 8, 1e-6);
}

TEST(SqrtSoftplusTopK, ASumOfZeroIsGuardedOrNot) {
  const Floats logits = {-1000, -2000}, bias(2, 0);
  auto inputs = softplus_inputs(logits, bias, 1);
  const Ids ids = {0};
  EXPECT_EQ(sqrt_softplus_topk_weights(inputs, ids.data(), {}).value[0], 0);
  inputs.rules.divisor = Divisor::sum;
  EXPECT_TRUE(std::isnan(sqrt_softplus_topk_weights(inputs, ids.data(), {}).value[0]));
}

TEST(SqrtSoftplusTopK, PaddingHasNoExpert) {
  const Floats logits = {1, 2, 3}, bias(3, 0);
  auto inputs = softplus_inputs(logits, bias, 2);
  const std::uint8_t padding = 1;
  inputs.is_padding = &padding;
  const Ids ids = sqrt_softplus_topk_choices(inputs, {}).exact(0);
  EXPECT_EQ(ids, (Ids{-1, -1}));
  EXPECT_EQ(sqrt_softplus_topk_weights(inputs, ids.data(), {}).value[0], 0);
}

TEST(SqrtSoftplusTopK, WhatTheRecoveredWeightLosesIsOutsideTheBoundOfTheScore) {
  const Floats logits = {1, 2}, bias = {4096, 0};
  auto inputs = softplus_inputs(logits, bias, 2);
  inputs.renormalize = false;
  const Ids ids = {0, 1};
  const float score = static_cast<float>(std::sqrt(std::log1p(std::exp(1.0))));
  volatile float sum = score + 4096.0F;  // rounded to multiples of 2^-11
  const double lost = std::abs(1.5 * static_cast<double>((sum - 4096.0F) - score));
  EXPECT_GT(lost, sqrt_softplus_topk_weights(inputs, ids.data(), {}).bound(0));
  inputs.recovered_weight = true;
  EXPECT_LT(lost, sqrt_softplus_topk_weights(inputs, ids.data(), {}).bound(0));
}

TEST(HashRouting, KeepsTheOrderOfTheTableAndLeavesStrangersAlone) {
  const Floats logits = {64, 256, -1000, 25};
  const Ids row = {2, 0, 4, 1, -1}, ids_before = {70, 71, 72, 73, 74};
  const Floats weights_before = {7, 8, 9, 10, 11};
  HashRouting inputs;
  inputs.logits = one_token(logits);
  inputs.experts = {row.data()};
  inputs.topk = 5;
  inputs.scale = 3;
  inputs.ids_before = ids_before.data();
  inputs.weights_before = weights_before.data();
  EXPECT_EQ(hash_routing_ids(inputs), (std::vector<std::int64_t>{2, 0, 72, 1, 74}));
  const Estimate weights = hash_routing_weights(inputs, {});
  EXPECT_EQ(weights.value, (std::vector<double>{0, 1, 9, 2, 11}));
}

TEST(HashRouting, ANanIsItsOwnWeightAndTheSumIsGuardedOrNot) {
  const Floats logits = {kNan, 64};
  const Ids row = {0, 1};
  HashRouting inputs;
  inputs.logits = one_token(logits);
  inputs.experts = {row.data()};
  inputs.topk = 2;
  EXPECT_EQ(hash_routing_weights(inputs, {}).value, (std::vector<double>{0, 1}));
  inputs.rules.nan_is_zero = false;
  const Estimate guarded = hash_routing_weights(inputs, {});
  EXPECT_TRUE(std::isnan(guarded.value[0]));
  EXPECT_EQ(guarded.value[1], 8);
  EXPECT_GT(guarded.worst[1], 0);
  inputs.rules.divisor = Divisor::sum;
  EXPECT_TRUE(std::isnan(hash_routing_weights(inputs, {}).value[1]));
}

}  // namespace router_test
}  // namespace plumb::reference
