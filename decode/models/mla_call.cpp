// SPDX-License-Identifier: Apache-2.0
#include "decode/models/mla_call.h"

#include <utility>

#include "decode/engine/geometry.h"

namespace plumb::device::decode {

namespace {
constexpr std::string_view kOp = "sparse_mla_decode", kPlanner = "get_decoding_sched_meta";

bool has_extra(const plumb_sparse_mla_decode_params& params) {
  return params.extra.indices != nullptr;
}

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

// An implementation that has the attention and no planner plans in front of its own launch.
void plan_attention(const Caller& call, const CallPlace& place,
                    const plumb_sparse_mla_decode_params& params, MlaState& state) {
  if (call.chooses(kOp, "plan=none") || (call.has(kOp) && !call.has(kPlanner))) return;
  if (state.kept.mark_planned()) return;
  const bool extra = has_extra(params);
  call(kPlanner, place.with(" plan"),
       plumb_get_decoding_sched_meta_params{
           .topk_length = params.main.lengths,
           .extra_topk_length = extra ? params.extra.lengths : nullptr,
           .tile_scheduler_metadata = state.plan.tiles,
           .num_splits = state.plan.num_splits,
           .requests = params.requests,
           .topk = params.main.width,
           .extra_topk = extra ? params.extra.width : 0,
           .num_sm_parts = state.plan.num_parts,
           .block_n = state.plan.block_n,
           .fixed_overhead = state.plan.fixed_overhead,
           .stream = nullptr,
           .topk_indptr = params.main.indptr,
           .extra_topk_indptr = extra ? params.extra.indptr : nullptr});
}

void call_attention(const Caller& call, CallPlace place, plumb_sparse_mla_decode_params params,
                    MlaState& state) {
  params.plan = &state.plan;
  if (call.chooses(kOp, "outputs=out")) params.lse = nullptr;
  if (call.chooses(kOp, "plan=none")) {
    params.plan = nullptr;
    params.partial_out = params.partial_lse = nullptr;
  }
  plan_attention(call, place, params, state);
  call(kOp, std::move(place), params, state.kept);
}

}  // namespace plumb::device::decode
