// SPDX-License-Identifier: Apache-2.0
//
// grouped_topk: computes sigmoid scores, chooses the best groups by the sum of their two best
// biased scores, then the best experts of these groups. Weights come from the unbiased scores
// (operations spec, 8.1).
#pragma once

#include "reference/router/router.h"
#include "reference/router/scored_choices.h"

namespace plumb::reference {

// How a non-finite logit is treated.
enum class Nonfinite {
  ordered_bits,       // its score follows from arithmetic
  guard_choice_only,  // its score follows from arithmetic, but the expert is not chosen
  guard_all           // its choice is -inf, also in group scores, and its score is 0
};

struct GroupedTopK {
  Logits logits;
  const float* bias = nullptr;  // [experts]
  std::int32_t n_group = 1, topk_group = 1, topk = 1;
  bool in_logits_format = false;  // scores, bias and sums are rounded to the logits' format
  bool renormalize = true;
  double scale = 1;
  Nonfinite nonfinite = Nonfinite::ordered_bits;
  bool bias_in_logits_format = false;  // even if sums are in fp32
  bool tanh_in_logits_format = false;  // a score is tanh(x / 2) / 2 + 1/2, with a rounded tanh
};

// Whether vLLM's small-expert kernel is used for the shape. That kernel computes in fp32 and with
// Nonfinite::ordered_bits.
bool has_small_experts(const GroupedTopK& inputs);

// The candidates of every token. If a token has a NaN logit, every expert is right, except under
// Nonfinite::guard_all.
ScoredChoices grouped_topk_choices(const GroupedTopK& inputs, const Numerics& numerics);

// Weights [tokens, topk] of the chosen experts `ids` [tokens, topk]. Rows with an id outside [0,
// experts) are 0.
Estimate grouped_topk_weights(const GroupedTopK& inputs, const ScoredChoices& choices,
                              const std::int32_t* ids, const Numerics& numerics);

}  // namespace plumb::reference
