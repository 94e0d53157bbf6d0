// SPDX-License-Identifier: Apache-2.0
//
// Sparse MLA prefill over a workspace of bf16 rows. Computes sparse_mla_decode with every query row
// as one request, and
//   max_logits = max x_i, without the sink; -inf for a row without candidates
// Indices outside the workspace, negative or too large, are skipped.
#pragma once

#include "reference/sparse_mla/mla_row.h"

namespace plumb::reference {

struct SparseMlaPrefill {
  Estimate out;              // bf16, [requests * heads, 512]
  Estimate max_logits, lse;  // fp32, natural units, [requests, heads]
};

// `problem` must have one query per request and no extra cache.
SparseMlaPrefill sparse_mla_prefill(const SparseMlaProblem& problem, const Numerics& numerics,
                                    MlaWant want = MlaWant::value_and_bound);

}  // namespace plumb::reference
