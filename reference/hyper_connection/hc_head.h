// SPDX-License-Identifier: Apache-2.0
//
// hc_head: the gated sum of the four streams before the LM head. The older variant rounds x * r to
// bf16 before its product with fn. The newer variant multiplies the fp32 product by r.
#pragma once

#include "reference/bound.h"
#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::reference {

struct HcHead {
  Streams hidden_states;
  const float* fn = nullptr;     // [4, 4 * hidden], K order (slot, hidden)
  const float* scale = nullptr;  // [1]
  const float* base = nullptr;   // [4]
  double rms_eps = 1e-6F, hc_eps = 1e-6F;
  bool round_normalised = false;
};

// Returns [tokens, hidden].
Estimate hc_head(const HcHead& inputs, const Numerics& numerics);

}  // namespace plumb::reference
