// SPDX-License-Identifier: Apache-2.0
//
// The verdict on a sparse MLA decode: its tile plan, the partial results of splits, the outputs,
// and the combination of the partial results that the device stored. And the verdict on a prefill.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/ops/sparse_mla/mla_inputs.h"
#include "reference/bound.h"
#include "reference/sparse_mla/tile_plan.h"

namespace plumb::cases {

inline constexpr std::int64_t kTileFields = 8;  // int32 of a tile; the last is padding

// The tile plan that follows from the lengths. All queries of a request have as many candidates.
reference::TilePlan mla_plan(const MlaShape& shape, const TensorSet& tensors);
RowMask parts_with_work(const MlaShape& shape, const reference::TilePlan& plan);
// Rows of a partial tensor whose slot belongs to a split request. Other rows are not promised.
RowMask written_slots(const MlaShape& shape, const reference::TilePlan& plan,
                      std::int64_t rows_per_slot);

// Expects all outputs of a decode. `tensors` may be without lse, and without the plan and partial
// results. `structured`: all candidates have equal weights, so that heads and dimensions of a
// request share their errors: a scale that is off by 2^-24 moves every tie of the output rounding.
Expectations expect_mla(const MlaShape& shape, const TensorSet& tensors,
                        const reference::Numerics& numerics, bool structured, bool stores_partials);
// Expects "tiles" and "num_splits" of a plan for `requests` requests.
Expectations expect_tile_plan(const TensorSet& tensors, const reference::TilePlan& plan,
                              std::int64_t requests);
// Two parts of expect_mla: the plan, whose rows are no requests, and the outputs end to end.
Expectations expect_mla_plan(const MlaShape& shape, const TensorSet& tensors);
Expectations expect_mla_outputs(const MlaShape& shape, const TensorSet& tensors,
                                const reference::Numerics& numerics, bool structured);

// Expects the outputs of a prefill, whose shape has one query per request and `main` alone.
// `tensors` may be without lse and max_logits.
Expectations expect_mla_prefill(const MlaShape& shape, const TensorSet& tensors,
                                const reference::Numerics& numerics, bool structured);

}  // namespace plumb::cases
