// SPDX-License-Identifier: Apache-2.0
//
// grouped_topk: sigmoid scores, the best groups by their two best biased experts, the best experts
// of those, weights of the unbiased scores   (operations spec, 8.1)
#pragma once

#include "reference/router/router.h"
#include "reference/router/scored_choices.h"

namespace plumb::reference {

struct GroupedTopK {
  Logits logits;
  const float* bias = nullptr;  // [experts]
  std::int32_t n_group = 1, topk_group = 1, topk = 1;
  bool in_logits_format = false;  // scores, bias and sums rounded to it; non-finite logits: -inf
  bool renormalize = true;
  double scale = 1;
};

// What every token has to choose from. In fp32 a NaN logit counts as +inf: it wins.
ScoredChoices grouped_topk_choices(const GroupedTopK& inputs, const Numerics& numerics);

// Weights [tokens, topk] of the experts that were chosen, ids [tokens, topk]. Rows that hold an id
// outside [0, experts) are left 0.
Estimate grouped_topk_weights(const GroupedTopK& inputs, const ScoredChoices& choices,
                              const std::int32_t* ids, const Numerics& numerics);

}  // namespace plumb::reference
