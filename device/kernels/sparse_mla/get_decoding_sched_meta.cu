// SPDX-License-Identifier: Apache-2.0
//
// get_decoding_sched_meta: the planner of sparse_mla_decode (mla_plan.h) as an op of its own. One
// wave adds up the blocks of all requests, and its first lane assigns them to parts. Legal launch:
// one block of one wave.
#include "device/kernels/metadata/ragged.h"
#include "device/kernels/sparse_mla/mla_plan.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

PLUMB_KERNEL void sched_meta_kernel(MlaCall call) {
  const int payload = payload_of_part(call);
  if (lane_index() == 0) plan_tiles(call, payload);
}

// Candidates for the planner, which reads only their number. `present`: any pointer that is not
// null, in place of indices.
plumb_mla_candidates candidates_of(const std::int32_t* lengths, const std::int32_t* indptr,
                                   std::int64_t width, const std::int32_t* present) {
  plumb_mla_candidates candidates{};
  candidates.indices = width > 0 || indptr != nullptr ? present : nullptr;
  candidates.lengths = lengths;
  candidates.indptr = indptr;
  candidates.width = width;
  return candidates;
}

plumb_status launch_sched_meta(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_get_decoding_sched_meta_params*>(params);
  MlaCall call{};
  call.plan = {sizeof call.plan, p.tile_scheduler_metadata, p.num_splits, p.num_sm_parts,
               p.block_n,        p.fixed_overhead};
  if (p.requests < 1 || p.topk < 0 || p.extra_topk < 0 || !legal_plan(call.plan) ||
      !fits_int(p.requests, p.topk, p.extra_topk)) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const bool ragged = p.topk_indptr != nullptr, extra = p.extra_topk > 0;
  if (ragged ? (p.topk_length || p.extra_topk_length || extra != (p.extra_topk_indptr != nullptr))
             : p.extra_topk_indptr != nullptr) {
    return PLUMB_INVALID_ARGUMENT;
  }
  call.params.main = candidates_of(p.topk_length, p.topk_indptr, p.topk, p.num_splits);
  call.params.extra =
      candidates_of(p.extra_topk_length, p.extra_topk_indptr, p.extra_topk, p.num_splits);
  call.params.requests = p.requests;
  const LaunchShape one_wave{1, 1, stream_properties(p.stream).wave_size, 0};
  return PLUMB_LAUNCH(sched_meta_kernel, one_wave, p.stream, call);
}

}  // namespace

OpEntry get_decoding_sched_meta() {
  return {"get_decoding_sched_meta", launch_sched_meta, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
