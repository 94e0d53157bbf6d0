// SPDX-License-Identifier: Apache-2.0
//
// What the attention of all models has in common: contiguous rows, and outputs and a plan only for
// a kernel that has these.
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <cstdint>

#include "decode/engine/calls.h"
#include "decode/metadata/attention_state.h"

namespace plumb::device::decode {

// Strides of one query per request, with a key of so many dimensions.
void set_strides(plumb_sparse_mla_decode_params& params, std::int64_t key_dims);

// Calls sparse_mla_decode with the plan of `state`.
void call_attention(const Caller& call, CallPlace place, plumb_sparse_mla_decode_params params,
                    MlaState& state);

}  // namespace plumb::device::decode
