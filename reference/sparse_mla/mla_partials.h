// SPDX-License-Identifier: Apache-2.0
//
// Partial results of the splits of a sparse MLA decode: for each split of a request with several
// splits, the output normalised over the split's own candidates, and its log-sum-exp in base 2.
// Without the attention sink.
#pragma once

#include <vector>

#include "reference/bound.h"
#include "reference/sparse_mla/mla_problem.h"
#include "reference/sparse_mla/tile_plan.h"

namespace plumb::reference {

struct MlaPartials {
  Estimate out;                   // fp32, [slots * queries * heads, 512]; 0 for an empty split
  Estimate lse;                   // fp32 base 2, [slots * queries, heads]; -inf for an empty split
  std::vector<bool> out_written;  // per row of `out`; the op does not specify other rows
  std::vector<bool> lse_written;  // per row of `lse`
};

// The partials have requests + number of parts slots.
MlaPartials sparse_mla_partials(const SparseMlaProblem& problem, const Numerics& numerics,
                                const TilePlan& plan, std::int64_t block_n);

}  // namespace plumb::reference
