// SPDX-License-Identifier: Apache-2.0
//
// Sparse MLA prefill over a workspace of bf16 rows. What sparse_mla_decode computes, with every
// query row a request of its own, and
//   max_logits = max x_i, without the sink; -inf for a row without candidates
// An index outside the workspace, on either side, is skipped.
#pragma once

#include "reference/sparse_mla/mla_row.h"

namespace plumb::reference {

struct SparseMlaPrefill {
  Estimate out;              // bf16, [requests * heads, 512]
  Estimate max_logits, lse;  // fp32 natural, [requests, heads]
};

// Of a problem with one query per request and no extra cache.
SparseMlaPrefill sparse_mla_prefill(const SparseMlaProblem& problem, const Numerics& numerics,
                                    MlaWant want = MlaWant::value_and_bound);

}  // namespace plumb::reference
