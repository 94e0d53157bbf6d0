// SPDX-License-Identifier: Apache-2.0
//
// Sparse MLA prefill as separate steps that each store their result in Numerics::score: scores,
// scores times sm_scale, their distance from the largest one (a sink counts), and p after its
// division by the sum. torch's attention without a fused kernel is of this kind.
#pragma once

#include "reference/sparse_mla/sparse_mla_prefill.h"

namespace plumb::reference {

// As sparse_mla_prefill. `max_logits` and `lse` are those of the stored scores.
SparseMlaPrefill unfused_mla_prefill(const SparseMlaProblem& problem, const Numerics& numerics);

}  // namespace plumb::reference
