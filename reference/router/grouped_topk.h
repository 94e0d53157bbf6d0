// SPDX-License-Identifier: Apache-2.0
//
// grouped_topk: sigmoid scores, the best groups by their two best biased experts, the best experts
// of those, weights of the unbiased scores   (operations spec, 8.1)
#pragma once

#include "reference/router/router.h"
#include "reference/router/scored_choices.h"

namespace plumb::reference {

// What a logit that is not finite does.
enum class Nonfinite {
  ordered_bits,       // its score is what arithmetic gives
  guard_choice_only,  // so it is, but the expert is not chosen
  guard_all           // its choice is -inf, also in group scores, and its score 0
};

struct GroupedTopK {
  Logits logits;
  const float* bias = nullptr;  // [experts]
  std::int32_t n_group = 1, topk_group = 1, topk = 1;
  bool in_logits_format = false;  // scores, bias and sums rounded to it
  bool renormalize = true;
  double scale = 1;
  Nonfinite nonfinite = Nonfinite::ordered_bits;
  bool bias_in_logits_format = false;  // also where sums are in fp32
  bool tanh_in_logits_format = false;  // a score is tanh(x / 2) / 2 + 1/2, its tanh rounded as well
};

// Whether vLLM's small-expert kernel takes the shape: it has fp32 and ordered bits.
bool has_small_experts(const GroupedTopK& inputs);

// What every token has to choose from. Unless all is guarded, every expert is right for a token
// with a NaN.
ScoredChoices grouped_topk_choices(const GroupedTopK& inputs, const Numerics& numerics);

// Weights [tokens, topk] of the experts that were chosen, ids [tokens, topk]. Rows that hold an id
// outside [0, experts) are left 0.
Estimate grouped_topk_weights(const GroupedTopK& inputs, const ScoredChoices& choices,
                              const std::int32_t* ids, const Numerics& numerics);

}  // namespace plumb::reference
