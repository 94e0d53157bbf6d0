// SPDX-License-Identifier: Apache-2.0
//
// sqrt_softplus_topk: the best experts by sqrt(softplus(logit)) + bias, weights of the unbiased
// scores   (operations spec, 8.2)
#pragma once

#include "reference/router/router.h"
#include "reference/router/scored_choices.h"

namespace plumb::reference {

struct SqrtSoftplusTopK {
  Logits logits;
  const float* bias = nullptr;               // [experts]
  const std::uint8_t* is_padding = nullptr;  // [tokens], optional: id -1, weight 0
  std::int32_t topk = 1;
  bool recovered_weight = false;  // (score + bias) - bias
  bool renormalize = true;
  double scale = 1;
  SoftplusRules rules = {};
};

// A NaN logit with the score 0 is chosen last, or as one whose score is 0: engines do both. One
// with the score NaN makes every expert right for its token.
ScoredChoices sqrt_softplus_topk_choices(const SqrtSoftplusTopK& inputs, const Numerics& numerics);

// Weights [tokens, topk] of the experts that were chosen, ids [tokens, topk]. Rows that hold an id
// outside [0, experts) are left 0.
Estimate sqrt_softplus_topk_weights(const SqrtSoftplusTopK& inputs, const std::int32_t* ids,
                                    const Numerics& numerics);

}  // namespace plumb::reference
