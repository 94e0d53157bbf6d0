// SPDX-License-Identifier: Apache-2.0
//
// mhc_post: adds the sublayer's output x to the mixed residual streams, out[n,h] = post[n] x[h] +
// sum_m comb[m,n] residual[m,h]. The sum runs over comb's first index.
#pragma once

#include <cstdint>

#include "reference/bound.h"
#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::reference {

struct MhcPost {
  const std::uint16_t* x = nullptr;  // bf16 [tokens, hidden]
  Streams residual;
  const float* post = nullptr;  // [tokens, 4]
  const float* comb = nullptr;  // [tokens, 4, 4]
};

// Returns [tokens * 4, hidden]; row token * 4 + n is stream n.
Estimate mhc_post(const MhcPost& inputs, const Numerics& numerics);

}  // namespace plumb::reference
