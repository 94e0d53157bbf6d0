// SPDX-License-Identifier: Apache-2.0
//
// Sparse MLA decode over a main and an optional extra cache:
//   x_i = sm_scale * (q . k_i),  lse = ln sum exp(x_i),  out = sum exp(x_i - lse) v_i / (1 +
//   exp(sink - lse))
// A row without candidates has out = 0 and lse = +inf. lse does not include the sink.
#pragma once

#include "reference/sparse_mla/mla_row.h"

namespace plumb::reference {

struct SparseMlaDecode {
  Estimate out;  // bf16, [requests * queries * heads, 512]
  Estimate lse;  // fp32 natural log, [requests * heads, queries]
};

// With MlaWant::value the estimates hold values only: sigma and worst stay 0.
SparseMlaDecode sparse_mla_decode(const SparseMlaProblem& problem, const Numerics& numerics,
                                  MlaWant want = MlaWant::value_and_bound);

}  // namespace plumb::reference
