// SPDX-License-Identifier: Apache-2.0
//
// hash_routing: experts by token id, weights sqrt(softplus(logit)) of those   (operations spec,
// 8.3)
#pragma once

#include "reference/router/router.h"

namespace plumb::reference {

struct HashRouting {
  Logits logits;
  std::vector<const std::int32_t*> experts;  // the table's row of each token
  std::int32_t topk = 1;
  bool renormalize = true;
  double scale = 1;
  SoftplusRules rules = {};
  // What the outputs held before, [tokens, topk]: where the table's id is no expert it stays.
  const std::int32_t* ids_before = nullptr;
  const float* weights_before = nullptr;
};

std::vector<std::int64_t> hash_routing_ids(const HashRouting& inputs);
// Ids outside [0, experts) have no share in the sum.
Estimate hash_routing_weights(const HashRouting& inputs, const Numerics& numerics);

}  // namespace plumb::reference
