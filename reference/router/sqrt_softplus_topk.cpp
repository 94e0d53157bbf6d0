// SPDX-License-Identifier: Apache-2.0
#include "reference/router/sqrt_softplus_topk.h"

#include <cmath>
#include <utility>

namespace plumb::reference {

namespace {

bool is_padding(const SqrtSoftplusTopK& inputs, std::int64_t token) {
  return inputs.is_padding && inputs.is_padding[token] != 0;
}

// A NaN logit's choice is anything between far below all others and its bias, because engines
// differ. Infinite choices are equal to each other, whatever their logits and biases.
void finish_token(const SqrtSoftplusTopK& inputs, std::int64_t token, Candidates& experts) {
  constexpr double kReach = 0x1p20;
  for (std::int64_t e = 0; e < inputs.logits.experts; ++e) {
    const std::int64_t at = token * inputs.logits.experts + e;
    if (std::isnan(inputs.logits.at(token, e))) {
      experts.score.value[at] = inputs.bias[e] - kReach;
      experts.score.sigma[at] = kReach / 6;
      experts.score.worst[at] = kReach;
    }
    experts.identity[at] = std::isinf(experts.score.value[at])
                               ? ~std::uint64_t{0}
                               : identity_of_bits(inputs.logits, inputs.bias, token, e);
  }
}

}  // namespace

ScoredChoices sqrt_softplus_topk_choices(const SqrtSoftplusTopK& inputs, const Numerics& numerics) {
  const std::int64_t tokens = inputs.logits.tokens;
  ScoredChoices choices;
  choices.k = inputs.topk;
  choices.experts.resize(tokens, inputs.logits.experts);
  choices.rule.assign(static_cast<std::size_t>(tokens), ScoredChoices::Rule::choose);
  for_token_blocks(tokens, inputs.logits.experts, numerics, [&](const RouterRows& rows) {
    const Tracked logits = rows.array([&](auto t, auto e) { return inputs.logits.at(t, e); });
    const Tracked bias = rows.array([&](auto, auto e) { return double{inputs.bias[e]}; });
    choices.experts.set_rows(rows.begin, sqrt_softplus_scores(logits, inputs.rules) + bias);
    for (std::int64_t token = rows.begin; token < rows.end; ++token) {
      finish_token(inputs, token, choices.experts);
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
  const Logits& logits = inputs.logits;
  const auto id = [&](auto token, auto place) { return ids[token * inputs.topk + place]; };
  const auto scores = [&](const RouterRows& rows) {
    Tracked score = sqrt_softplus_scores(
        rows.array([&](auto t, auto i) { return logits.at_expert(t, id(t, i)); }), inputs.rules);
    if (!inputs.recovered_weight) return score;
    const Tracked bias = rows.array(
        [&](auto t, auto i) { return logits.has(id(t, i)) ? double{inputs.bias[id(t, i)]} : 0; });
    return std::move(score) + bias - bias;
  };
  return weights_of({.tokens = logits.tokens,
                     .topk = inputs.topk,
                     .divisor = inputs.renormalize ? inputs.rules.divisor : Divisor::one,
                     .scale = inputs.scale,
                     .scores = scores,
                     .is_chosen =
                         [&](auto token, auto) {
                           return !is_padding(inputs, token) &&
                                  logits.has_all(ids + token * inputs.topk, inputs.topk);
                         },
                     .otherwise = [](auto, auto) { return 0.0; }},
                    numerics);
}

}  // namespace plumb::reference
