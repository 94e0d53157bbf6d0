// SPDX-License-Identifier: Apache-2.0
//
// hash_routing: chooses experts by token id, with weights sqrt(softplus(logit)) of these experts
// (operations spec, 8.3).
#pragma once

#include "reference/router/router.h"

namespace plumb::reference {

struct HashRouting {
  Logits logits;
  std::vector<const std::int32_t*> experts;  // row of the table for each token
  std::int32_t topk = 1;
  bool renormalize = true;
  double scale = 1;
  SoftplusRules rules = {};
  // Contents of the outputs before the call, [tokens, topk]. They stay if the table's id is no
  // expert.
  const std::int32_t* ids_before = nullptr;
  const float* weights_before = nullptr;
};

std::vector<std::int64_t> hash_routing_ids(const HashRouting& inputs);
// Ids outside [0, experts) do not count in the sum that weights are divided by.
Estimate hash_routing_weights(const HashRouting& inputs, const Numerics& numerics);

}  // namespace plumb::reference
