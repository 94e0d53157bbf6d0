// SPDX-License-Identifier: Apache-2.0
//
// The planner of device/kernels/placeholders/placeholder_kernels.h. Launch: one block of one wave.
#include "device/kernels/metadata/ragged.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "device/kernels/sparse_mla/mla_plan.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

PLUMB_KERNEL void tile_plan_kernel(MlaCall call) {
  const int payload = payload_of_part(call);
  if (lane_index() == 0) plan_tiles(call, payload);
}

plumb_status launch_tile_plan(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_tile_plan_params*>(params);
  const plumb_mla_plan& plan = p.plan;
  if (p.indptr == nullptr || p.rows < 1 || !legal_plan(plan)) return PLUMB_INVALID_ARGUMENT;
  // An attention of these rows, of which the planner looks at no more than their lengths.
  MlaCall call{{}, plan};
  call.params.main.indices = p.indptr;
  call.params.main.indptr = p.indptr;
  call.params.requests = p.rows;
  const LaunchShape one_wave{1, 1, stream_properties(p.stream).wave_size, 0};
  return PLUMB_LAUNCH(tile_plan_kernel, one_wave, p.stream, call);
}

}  // namespace

OpEntry tile_plan() { return {"tile_plan", launch_tile_plan, kExactNumerics}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
