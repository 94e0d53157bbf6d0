// SPDX-License-Identifier: Apache-2.0
#include "reference/router/hash_routing.h"

namespace plumb::reference {

namespace {

bool is_expert(const HashRouting& inputs, std::int64_t token, std::int64_t place) {
  return inputs.logits.has(inputs.experts[token][place]);
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
  const auto logit = [&](auto token, auto place) {
    return inputs.logits.at_expert(token, inputs.experts[token][place]);
  };
  return weights_of(
      {.tokens = inputs.logits.tokens,
       .topk = inputs.topk,
       .divisor = inputs.renormalize ? inputs.rules.divisor : Divisor::one,
       .scale = inputs.scale,
       .scores =
           [&](const RouterRows& rows) {
             return sqrt_softplus_scores(rows.array(logit), inputs.rules);
           },
       .is_chosen = [&](auto token, auto place) { return is_expert(inputs, token, place); },
       .otherwise =
           [&](auto token, auto place) {
             const bool stays = !is_expert(inputs, token, place);
             return stays ? double{inputs.weights_before[token * inputs.topk + place]} : 0;
           }},
      numerics);
}

}  // namespace plumb::reference
