// SPDX-License-Identifier: Apache-2.0
//
// sqrt_softplus_topk: chooses the best experts by sqrt(softplus(logit)) + bias. Weights come from
// the unbiased scores (operations spec, 8.2).
#pragma once

#include "reference/router/router.h"
#include "reference/router/scored_choices.h"

namespace plumb::reference {

struct SqrtSoftplusTopK {
  Logits logits;
  const float* bias = nullptr;               // [experts]
  const std::uint8_t* is_padding = nullptr;  // [tokens], optional; padding gets id -1, weight 0
  std::int32_t topk = 1;
  bool recovered_weight = false;  // the weight uses (score + bias) - bias instead of score
  bool renormalize = true;
  double scale = 1;
  SoftplusRules rules = {};
};

// If the score of a NaN logit is 0, engines choose it last or as a score of 0, and both are right.
// If it is NaN, every expert is right for the token.
ScoredChoices sqrt_softplus_topk_choices(const SqrtSoftplusTopK& inputs, const Numerics& numerics);

// Weights [tokens, topk] of the chosen experts `ids` [tokens, topk]. Rows with an id outside [0,
// experts) are 0.
Estimate sqrt_softplus_topk_weights(const SqrtSoftplusTopK& inputs, const std::int32_t* ids,
                                    const Numerics& numerics);

}  // namespace plumb::reference
