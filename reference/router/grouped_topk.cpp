// SPDX-License-Identifier: Apache-2.0
#include "reference/router/grouped_topk.h"

#include <algorithm>
#include <cmath>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

namespace {

bool to_bf16(const GroupedTopK& inputs) { return inputs.in_logits_format && inputs.logits.bf16; }

bool counts_as_nothing(const GroupedTopK& inputs, double logit) {
  return inputs.nonfinite == Nonfinite::guard_all && !std::isfinite(logit);
}

Score score_of(const GroupedTopK& inputs, double logit, const Numerics& numerics) {
  if (counts_as_nothing(inputs, logit)) return {};
  const Score score = sigmoid_score(logit, numerics);
  return to_bf16(inputs) ? rounded_to_bf16(score) : score;
}

// A sum in bf16: of two bf16 numbers, in fp32, where it need not be exact, and then rounded.
Score add_in_bf16(const Score& score, double bias) {
  const double sum = score.value + bias;
  const bool exact = static_cast<double>(static_cast<float>(sum)) == sum;
  const Score in_fp32{sum, 0, score.worst + (exact ? 0 : kUnitF32 * std::abs(sum))};
  return rounded_to_bf16(in_fp32);
}

Score choice_of(const GroupedTopK& inputs, double logit, double bias, const Numerics& numerics) {
  if (counts_as_nothing(inputs, logit)) return {-kInfinity, 0, 0};
  if (std::isnan(logit)) return {kInfinity, 0, 0};
  const Score score = score_of(inputs, logit, numerics);
  const bool rounds_bias = inputs.logits.bf16 && (inputs.bias_in_logits_format || to_bf16(inputs));
  if (rounds_bias) bias = decode_bf16(encode_bf16(bias));
  return to_bf16(inputs) ? add_in_bf16(score, bias) : add(score, bias);
}

// The two largest of some numbers, by value, and the sums that they could have at the most and at
// the least: the largest and the second largest both grow with every one of the numbers.
struct TwoLargest {
  double first = -kInfinity, second = -kInfinity;
  void take(double x) {
    second = std::max(second, std::min(first, x));
    first = std::max(first, x);
  }
  double sum() const { return first == kInfinity ? kInfinity : first + second; }
};

Score group_score(const GroupedTopK& inputs, const Estimate& choice, std::int64_t begin,
                  std::int64_t end) {
  TwoLargest value, most, least;
  double sigma = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    value.take(choice.value[i]);
    most.take(choice.value[i] + choice.worst[i]);
    least.take(choice.value[i] - choice.worst[i]);
    sigma = std::max(sigma, choice.sigma[i]);
  }
  const double sum = value.sum();
  if (!std::isfinite(sum)) return {sum, 0, 0};
  const Score exact{sum, std::sqrt(2.0) * sigma, std::max(most.sum() - sum, sum - least.sum())};
  return to_bf16(inputs) ? add_in_bf16(exact, 0) : add(exact, 0);
}

// The same experts in the same order, bit for bit.
std::uint64_t group_identity(const Candidates& experts, std::int64_t begin, std::int64_t end) {
  std::uint64_t hash = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    hash = (hash ^ experts.identity[i]) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

void fill_groups(const GroupedTopK& inputs, std::int64_t token, ScoredChoices& choices) {
  const std::int64_t experts = inputs.logits.experts, width = experts / inputs.n_group;
  std::int64_t alive = 0;
  for (std::int64_t g = 0; g < inputs.n_group; ++g) {
    const std::int64_t begin = token * experts + g * width;
    const Score score = group_score(inputs, choices.experts.score, begin, begin + width);
    store(score, group_identity(choices.experts, begin, begin + width), choices.group,
          token * inputs.n_group + g);
    alive += score.value > -kInfinity;
  }
  if (alive < inputs.topk_group) choices.rule[token] = ScoredChoices::Rule::first_k;
}

// Which of the experts that count as nothing are taken, where there is nothing else, is free.
std::uint64_t identity_of(const GroupedTopK& inputs, const Score& choice, std::int64_t token,
                          std::int64_t expert) {
  if (choice.value == -kInfinity) return static_cast<std::uint64_t>(expert);
  return identity_of_bits(inputs.logits, inputs.bias, token, expert);
}

// Experts without a finite logit are not chosen. What takes their places is free.
void guard_choices(const GroupedTopK& inputs, std::int64_t token, ScoredChoices& choices) {
  const std::int64_t experts = inputs.logits.experts, width = experts / inputs.n_group;
  std::vector<std::int64_t> open(static_cast<std::size_t>(inputs.n_group), width);
  for (std::int64_t e = 0; e < experts; ++e) {
    if (std::isfinite(inputs.logits.at(token, e))) continue;
    const auto identity = static_cast<std::uint64_t>(e);
    store({-kInfinity, 0, 0}, identity, choices.experts, token * experts + e);
    --open[static_cast<std::size_t>(e / width)];
  }
  std::int64_t left = 0;
  for (const std::int32_t g : choices.group.best(token, inputs.topk_group)) left += open[g];
  if (left < inputs.topk) choices.rule[token] = ScoredChoices::Rule::any_expert;
}

void fill_token(const GroupedTopK& inputs, std::int64_t token, const Numerics& numerics,
                ScoredChoices& choices) {
  const std::int64_t experts = inputs.logits.experts;
  for (std::int64_t e = 0; e < experts; ++e) {
    const Score choice = choice_of(inputs, inputs.logits.at(token, e), inputs.bias[e], numerics);
    store(choice, identity_of(inputs, choice, token, e), choices.experts, token * experts + e);
  }
  fill_groups(inputs, token, choices);
  if (inputs.nonfinite == Nonfinite::guard_choice_only) guard_choices(inputs, token, choices);
  if (inputs.nonfinite != Nonfinite::guard_all && inputs.logits.has_nan(token)) {
    choices.rule[token] = ScoredChoices::Rule::any_expert;
  }
}

}  // namespace

bool has_small_experts(const GroupedTopK& inputs) {
  const std::int64_t experts = inputs.logits.experts;
  if (inputs.n_group == 1) return experts <= 512 && (inputs.topk <= 8 || inputs.topk == 22);
  const bool fits = experts <= 256 && inputs.topk <= 8;
  return fits && experts <= 32 * inputs.n_group && inputs.topk_group <= 4;
}

ScoredChoices grouped_topk_choices(const GroupedTopK& inputs, const Numerics& numerics) {
  const std::int64_t tokens = inputs.logits.tokens;
  ScoredChoices choices;
  choices.k = inputs.topk;
  choices.groups = inputs.n_group;
  choices.kept = inputs.topk_group;
  choices.experts.resize(tokens, inputs.logits.experts);
  choices.group.resize(tokens, inputs.n_group);
  choices.rule.assign(static_cast<std::size_t>(tokens), ScoredChoices::Rule::choose);
  parallel_for(tokens, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      fill_token(inputs, token, numerics, choices);
    }
  });
  return choices;
}

Estimate grouped_topk_weights(const GroupedTopK& inputs, const ScoredChoices& choices,
                              const std::int32_t* ids, const Numerics& numerics) {
  Estimate weights;
  weights.resize(inputs.logits.tokens, inputs.topk);
  weights.output = Format::f32;
  const Divisor divisor = inputs.renormalize ? Divisor::sum_and_1e_20 : Divisor::one;
  for (std::int64_t token = 0; token < inputs.logits.tokens; ++token) {
    const std::int32_t* row = ids + token * inputs.topk;
    if (choices.rule[token] == ScoredChoices::Rule::first_k) {
      std::fill_n(weights.value.begin() + token * inputs.topk, inputs.topk, 1.0 / inputs.topk);
    } else if (are_experts(row, inputs.topk, inputs.logits.experts)) {
      std::vector<Score> scores;
      for (std::int32_t i = 0; i < inputs.topk; ++i) {
        scores.push_back(score_of(inputs, inputs.logits.at(token, row[i]), numerics));
      }
      estimate_weights(scores, divisor, inputs.scale, numerics, token, weights);
    }
  }
  return weights;
}

}  // namespace plumb::reference
