// SPDX-License-Identifier: Apache-2.0
#include "reference/router/grouped_topk.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/formats/bfloat16.h"
#include "reference/tracked/other_forms.h"

namespace plumb::reference {

namespace {

bool to_bf16(const GroupedTopK& inputs) { return inputs.in_logits_format && inputs.logits.bf16; }

bool counts_as_nothing(const GroupedTopK& inputs, double logit) {
  return inputs.nonfinite == Nonfinite::guard_all && !std::isfinite(logit);
}

Tracked stored(const GroupedTopK& inputs, Tracked a) {
  return to_bf16(inputs) ? rounded(std::move(a), Format::bf16) : a;
}

// Scores of logits. The score is 0 for a logit that counts as nothing: a non-finite one under
// Nonfinite::guard_all.
Tracked scores_of(const GroupedTopK& inputs, const RouterRows& rows, const auto& logit) {
  Tracked scores = sigmoid_by_exp2_or_tanh(rows.array([&](auto token, auto column) {
    const double x = logit(token, column);
    return counts_as_nothing(inputs, x) ? -kInfinity : x;
  }));
  if (inputs.tanh_in_logits_format) {
    // tanh(x / 2) = 2 sigmoid(x) - 1. Errors smaller than those of the sigmoid are lost in the sum
    // with 1/2.
    scores = stored(inputs, std::move(scores) * 2.0 + -1.0) * 0.5 + 0.5;
  }
  return stored(inputs, std::move(scores));
}

// Number that is added to a score for the choice of experts: the bias, or an infinity that decides
// the choice for a non-finite logit.
double bias_of(const GroupedTopK& inputs, double logit, double bias) {
  if (counts_as_nothing(inputs, logit)) return -kInfinity;
  if (std::isnan(logit)) return kInfinity;
  const bool rounds = inputs.logits.bf16 && (inputs.bias_in_logits_format || to_bf16(inputs));
  return rounds ? decode_bf16(encode_bf16(bias)) : bias;
}

void set_scores(const GroupedTopK& inputs, const RouterRows& rows, ScoredChoices& choices) {
  const std::int64_t width = inputs.logits.experts / inputs.n_group;
  const Tracked score = scores_of(inputs, rows, [&](auto token, auto expert) {
    const double x = inputs.logits.at(token, expert);
    return std::isnan(x) ? 0 : x;  // the infinite bias decides
  });
  const Tracked bias = rows.array([&](auto token, auto expert) {
    return bias_of(inputs, inputs.logits.at(token, expert), inputs.bias[expert]);
  });
  const Tracked choice = stored(inputs, score + bias);
  choices.experts.set_rows(rows.begin, choice);
  const Tracked group = reshaped(choice, {rows.end - rows.begin, inputs.n_group, width});
  choices.group.set_rows(rows.begin,
                         stored(inputs, nth_largest(group, 2, 0) + nth_largest(group, 2, 1)));
}

// Hash of a group's expert identities: equal groups have the same experts' bits in the same order.
std::uint64_t group_identity(const Candidates& experts, std::int64_t begin, std::int64_t end) {
  std::uint64_t hash = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    hash = (hash ^ experts.identity[i]) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

void name_groups(const GroupedTopK& inputs, std::int64_t token, ScoredChoices& choices) {
  const std::int64_t experts = inputs.logits.experts, width = experts / inputs.n_group;
  std::int64_t alive = 0;
  for (std::int64_t g = 0; g < inputs.n_group; ++g) {
    const std::int64_t begin = token * experts + g * width, at = token * inputs.n_group + g;
    choices.group.identity[at] = group_identity(choices.experts, begin, begin + width);
    alive += choices.group.score.value[at] > -kInfinity;
  }
  if (alive < inputs.topk_group) choices.rule[token] = ScoredChoices::Rule::first_k;
}

// Applies Nonfinite::guard_choice_only: experts without a finite logit are not chosen. If the kept
// groups have too few finite logits, any expert is right.
void guard_choices(const GroupedTopK& inputs, std::int64_t token, ScoredChoices& choices) {
  const std::int64_t experts = inputs.logits.experts, width = experts / inputs.n_group;
  std::vector<std::int64_t> open(static_cast<std::size_t>(inputs.n_group), width);
  for (std::int64_t e = 0; e < experts; ++e) {
    if (std::isfinite(inputs.logits.at(token, e))) continue;
    choices.experts.score.value[token * experts + e] = -kInfinity;
    choices.experts.identity[token * experts + e] = static_cast<std::uint64_t>(e);
    --open[static_cast<std::size_t>(e / width)];
  }
  std::int64_t left = 0;
  for (const std::int32_t g : choices.group.best(token, inputs.topk_group)) left += open[g];
  if (left < inputs.topk) choices.rule[token] = ScoredChoices::Rule::any_expert;
}

void finish_token(const GroupedTopK& inputs, std::int64_t token, ScoredChoices& choices) {
  const std::int64_t experts = inputs.logits.experts;
  for (std::int64_t e = 0; e < experts; ++e) {
    // Experts that count as nothing may be chosen in any order if no other is left, so each gets
    // its own identity.
    const std::int64_t at = token * experts + e;
    const bool closed = choices.experts.score.value[at] == -kInfinity;
    choices.experts.identity[at] = closed ? static_cast<std::uint64_t>(e)
                                          : identity_of_bits(inputs.logits, inputs.bias, token, e);
  }
  name_groups(inputs, token, choices);
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
  for_token_blocks(tokens, inputs.logits.experts, numerics, [&](const RouterRows& rows) {
    set_scores(inputs, rows, choices);
    for (std::int64_t token = rows.begin; token < rows.end; ++token) {
      finish_token(inputs, token, choices);
    }
  });
  return choices;
}

Estimate grouped_topk_weights(const GroupedTopK& inputs, const ScoredChoices& choices,
                              const std::int32_t* ids, const Numerics& numerics) {
  const Logits& logits = inputs.logits;
  const auto logit = [&](auto token, auto place) {
    return logits.at_expert(token, ids[token * inputs.topk + place]);
  };
  const auto is_fixed = [&](auto token) {
    return choices.rule[token] == ScoredChoices::Rule::first_k;
  };
  return weights_of(
      {.tokens = logits.tokens,
       .topk = inputs.topk,
       .divisor = inputs.renormalize ? Divisor::sum_and_1e_20 : Divisor::one,
       .scale = inputs.scale,
       .scores = [&](const RouterRows& rows) { return scores_of(inputs, rows, logit); },
       .is_chosen =
           [&](auto token, auto) {
             return !is_fixed(token) && logits.has_all(ids + token * inputs.topk, inputs.topk);
           },
       .otherwise = [&](auto token, auto) { return is_fixed(token) ? 1.0 / inputs.topk : 0; }},
      numerics);
}

}  // namespace plumb::reference
