// SPDX-License-Identifier: Apache-2.0
//
// Attention calls of all models: rows are contiguous; outputs and plan are passed only to a kernel
// whose contract has them. Also the planner.
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <cstdint>

#include "decode/engine/calls.h"
#include "decode/metadata/attention_state.h"

namespace plumb::device::decode {

// Sets the strides for one query per request and keys of `key_dims` dimensions.
void set_strides(plumb_sparse_mla_decode_params& params, std::int64_t key_dims);

// Enqueues the planner for such an attention, if the plan of `state` is not made.
void plan_attention(const Caller& call, const CallPlace& place,
                    const plumb_sparse_mla_decode_params& params, MlaState& state);

// Calls sparse_mla_decode with the plan of `state`, behind the planner where it is needed.
void call_attention(const Caller& call, CallPlace place, plumb_sparse_mla_decode_params params,
                    MlaState& state);

}  // namespace plumb::device::decode
