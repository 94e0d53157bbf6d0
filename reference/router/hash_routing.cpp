// SPDX-License-Identifier: Apache-2.0
#include "reference/router/hash_routing.h"

namespace plumb::reference {

namespace {

bool is_expert(const HashRouting& inputs, std::int64_t token, std::int32_t place) {
  return are_experts(inputs.experts[token] + place, 1, inputs.logits.experts);
}

Score score_at(const HashRouting& inputs, std::int64_t token, std::int32_t place,
               const Numerics& numerics) {
  if (!is_expert(inputs, token, place)) return {};
  const double logit = inputs.logits.at(token, inputs.experts[token][place]);
  return sqrt_softplus_score(logit, inputs.rules, numerics);
}

}  // namespace

std::vector<std::int64_t> hash_routing_ids(const HashRouting& inputs) {
  std::vector<std::int64_t> ids;
  for (std::int64_t token = 0; token < inputs.logits.tokens; ++token) {
    for (std::int32_t place = 0; place < inputs.topk; ++place) {
      ids.push_back(is_expert(inputs, token, place)
                        ? inputs.experts[token][place]
                        : inputs.ids_before[token * inputs.topk + place]);
    }
  }
  return ids;
}

Estimate hash_routing_weights(const HashRouting& inputs, const Numerics& numerics) {
  Estimate weights;
  weights.resize(inputs.logits.tokens, inputs.topk);
  weights.output = Format::f32;
  const Divisor divisor = inputs.renormalize ? inputs.rules.divisor : Divisor::one;
  for (std::int64_t token = 0; token < inputs.logits.tokens; ++token) {
    std::vector<Score> scores;
    for (std::int32_t place = 0; place < inputs.topk; ++place) {
      scores.push_back(score_at(inputs, token, place, numerics));
    }
    estimate_weights(scores, divisor, inputs.scale, numerics, token, weights);
    for (std::int32_t place = 0; place < inputs.topk; ++place) {
      const std::int64_t at = token * inputs.topk + place;
      if (is_expert(inputs, token, place)) continue;
      weights.value[at] = inputs.weights_before[at];
      weights.sigma[at] = weights.worst[at] = 0;
    }
  }
  return weights;
}

}  // namespace plumb::reference
