// SPDX-License-Identifier: Apache-2.0
//
// Combines the splits of a sparse MLA decode from the partial results that a kernel stored.
#pragma once

#include <cstdint>
#include <span>

#include "reference/bound.h"
#include "reference/sparse_mla/mla_problem.h"
#include "reference/sparse_mla/sparse_mla_decode.h"

namespace plumb::reference {

// Overwrites in `result` the rows of every request that `num_splits` [requests + 1] divides into
// several splits. partial_out: fp32 [slots, queries, heads, 512]. partial_lse: fp32, base 2 [slots,
// queries, heads].
void mla_combine(const SparseMlaProblem& problem, const Numerics& numerics,
                 std::span<const std::int32_t> num_splits, const float* partial_out,
                 const float* partial_lse, SparseMlaDecode& result);

}  // namespace plumb::reference
