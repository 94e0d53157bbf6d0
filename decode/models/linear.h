// SPDX-License-Identifier: Apache-2.0
//
// Linear maps between the ops of a step: projections and experts. Each has its own seeded matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/engine/model.h"

namespace plumb::device::decode {

enum class Projection {
  q,
  kv,
  rope_key,
  head,
  index_q,
  index_key,
  index_weights,
  state,
  index_state,
  output,
  router,
  experts,
  draft_embedding,
  draft_stream
};

// Maps bf16 [tokens, in_columns] to [tokens, out_columns]. The matrix depends on `projection` and
// on the layer and model of `place`.
void linear(const StepContext& step, const CallPlace& place, Projection projection, const void* in,
            std::int64_t in_columns, void* out, std::int64_t out_columns,
            plumb_format out_format = PLUMB_BF16);
// As above, for the rows [0, rows), also outside of a step.
void linear(const Caller& call, std::int64_t rows, const CallPlace& place, Projection projection,
            const void* in, std::int64_t in_columns, void* out, std::int64_t out_columns,
            plumb_format out_format);

}  // namespace plumb::device::decode
