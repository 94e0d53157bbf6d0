// SPDX-License-Identifier: Apache-2.0
#include "reference/router/sqrt_softplus_topk.h"

#include <cmath>

namespace plumb::reference {

namespace {

bool is_padding(const SqrtSoftplusTopK& inputs, std::int64_t token) {
  return inputs.is_padding && inputs.is_padding[token] != 0;
}

// Anything from far below every other choice up to the bias.
Score choice_of_nan(double bias) {
  constexpr double kReach = 0x1p20;
  return {bias - kReach, kReach / 6, kReach};
}

Score choice_of(const SqrtSoftplusTopK& inputs, std::int64_t token, std::int64_t expert,
                const Numerics& numerics) {
  const double logit = inputs.logits.at(token, expert);
  if (std::isnan(logit)) return choice_of_nan(inputs.bias[expert]);
  return add(sqrt_softplus_score(logit, inputs.rules, numerics), inputs.bias[expert]);
}

void fill_token(const SqrtSoftplusTopK& inputs, std::int64_t token, const Numerics& numerics,
                Candidates& experts) {
  // Infinite choices are equal, whatever they are made of.
  constexpr std::uint64_t kInfinite = ~std::uint64_t{0};
  for (std::int64_t e = 0; e < inputs.logits.experts; ++e) {
    const Score choice = choice_of(inputs, token, e, numerics);
    const std::uint64_t identity = std::isinf(choice.value)
                                       ? kInfinite
                                       : identity_of_bits(inputs.logits, inputs.bias, token, e);
    store(choice, identity, experts, token * inputs.logits.experts + e);
  }
}

Score weight_source(const SqrtSoftplusTopK& inputs, std::int64_t token, std::int32_t expert,
                    const Numerics& numerics) {
  const Score score = sqrt_softplus_score(inputs.logits.at(token, expert), inputs.rules, numerics);
  return inputs.recovered_weight ? recovered(score, inputs.bias[expert]) : score;
}

}  // namespace

ScoredChoices sqrt_softplus_topk_choices(const SqrtSoftplusTopK& inputs, const Numerics& numerics) {
  const std::int64_t tokens = inputs.logits.tokens;
  ScoredChoices choices;
  choices.k = inputs.topk;
  choices.experts.resize(tokens, inputs.logits.experts);
  choices.rule.assign(static_cast<std::size_t>(tokens), ScoredChoices::Rule::choose);
  parallel_for(tokens, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      fill_token(inputs, token, numerics, choices.experts);
      if (is_padding(inputs, token)) {
        choices.rule[token] = ScoredChoices::Rule::none;
      } else if (!inputs.rules.nan_is_zero && inputs.logits.has_nan(token)) {
        choices.rule[token] = ScoredChoices::Rule::any_expert;
      }
    }
  });
  return choices;
}

Estimate sqrt_softplus_topk_weights(const SqrtSoftplusTopK& inputs, const std::int32_t* ids,
                                    const Numerics& numerics) {
  Estimate weights;
  weights.resize(inputs.logits.tokens, inputs.topk);
  weights.output = Format::f32;
  const Divisor divisor = inputs.renormalize ? inputs.rules.divisor : Divisor::one;
  for (std::int64_t token = 0; token < inputs.logits.tokens; ++token) {
    const std::int32_t* row = ids + token * inputs.topk;
    if (is_padding(inputs, token) || !are_experts(row, inputs.topk, inputs.logits.experts)) {
      continue;
    }
    std::vector<Score> scores;
    for (std::int32_t i = 0; i < inputs.topk; ++i) {
      scores.push_back(weight_source(inputs, token, row[i], numerics));
    }
    estimate_weights(scores, divisor, inputs.scale, numerics, token, weights);
  }
  return weights;
}

}  // namespace plumb::reference
