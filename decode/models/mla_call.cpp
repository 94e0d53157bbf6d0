// SPDX-License-Identifier: Apache-2.0
#include "decode/models/mla_call.h"

#include <utility>

#include "decode/engine/geometry.h"

namespace plumb::device::decode {

namespace {
constexpr std::string_view kOp = "sparse_mla_decode";
}  // namespace

void set_strides(plumb_sparse_mla_decode_params& params, std::int64_t key_dims) {
  params.q_request_stride = params.q_query_stride = params.heads * key_dims;
  params.q_head_stride = key_dims;
  params.out_request_stride = params.out_query_stride = params.heads * kHeadDim;
  params.out_head_stride = kHeadDim;
  params.lse_request_stride = params.heads;
  params.lse_head_stride = 1;
  params.partial_out_slot_stride = params.partial_out_query_stride = params.heads * kHeadDim;
  params.partial_out_head_stride = kHeadDim;
  params.partial_lse_slot_stride = params.partial_lse_query_stride = params.heads;
}

void call_attention(const Caller& call, CallPlace place, plumb_sparse_mla_decode_params params,
                    MlaState& state) {
  params.plan = &state.plan;
  if (call.chooses(kOp, "outputs=out")) params.lse = nullptr;
  if (call.chooses(kOp, "plan=none")) {
    params.plan = nullptr;
    params.partial_out = params.partial_lse = nullptr;
  }
  call(kOp, std::move(place), params, state.kept);
}

}  // namespace plumb::device::decode
