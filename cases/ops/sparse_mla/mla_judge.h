// SPDX-License-Identifier: Apache-2.0
//
// The verdict on a sparse MLA decode: its tile plan, the partial results of its splits, its
// outputs, and the combination of the partial results as they are stored. And that on a prefill.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/ops/sparse_mla/mla_inputs.h"
#include "reference/bound.h"
#include "reference/sparse_mla/tile_plan.h"

namespace plumb::cases {

inline constexpr std::int64_t kTileFields = 8;  // int32 of a tile; the last is padding

// The plan that the lengths ask for. Every query of a request has as many candidates.
reference::TilePlan mla_plan(const MlaShape& shape, const TensorSet& tensors);
RowMask parts_with_work(const MlaShape& shape, const reference::TilePlan& plan);
// Rows of a partial tensor whose slot belongs to a split request. Nobody promises the others.
RowMask written_slots(const MlaShape& shape, const reference::TilePlan& plan,
                      std::int64_t rows_per_slot);

// The set may lack lse, and the plan with the partial results.
// `structured`: candidates weigh the same, and so do the errors of all heads and dimensions of a
// request: a scale that is off by 2^-24 takes every tie of the output rounding along.
Expectations expect_mla(const MlaShape& shape, const TensorSet& tensors,
                        const reference::Numerics& numerics, bool structured, bool stores_partials);
// "tiles" and "num_splits" of so many requests.
Expectations expect_tile_plan(const TensorSet& tensors, const reference::TilePlan& plan,
                              std::int64_t requests);
// Of judge_mla, what has no rows of requests, and outputs end to end.
Expectations expect_mla_plan(const MlaShape& shape, const TensorSet& tensors);
Expectations expect_mla_outputs(const MlaShape& shape, const TensorSet& tensors,
                                const reference::Numerics& numerics, bool structured);

// Of a shape with one query per request and `main` alone. The set may lack lse and max_logits.
Expectations expect_mla_prefill(const MlaShape& shape, const TensorSet& tensors,
                                const reference::Numerics& numerics, bool structured);

}  // namespace plumb::cases
