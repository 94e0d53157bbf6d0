// SPDX-License-Identifier: Apache-2.0
//
// The plan that a kernel goes by: which part of its grid does what. A plan of other lengths is
// right on both sides if the judge reads the same one, and hides where lengths differ by less than
// a block. So what each reader was given is judged as the planner's own result, on the lengths that
// the requests have.
#pragma once

#include <optional>
#include <string>

#include "decode/engine/step_inputs.h"
#include "decode/recording/call_recorder.h"

namespace plumb::cases {

struct WrongKernelPlan {
  std::string op;  // the planner
  std::string text;
};
// Of a sparse_mla_decode with a tile plan, or of an fp8_paged_mqa_logits with a schedule. `plan` is
// the host's, which the model of requests has checked.
std::optional<WrongKernelPlan> wrong_kernel_plan(const CallRecorder::CallRecording& reader,
                                                 const device::decode::StepPlan& plan,
                                                 const device::decode::Geometry& geometry,
                                                 const device::Properties& properties);

}  // namespace plumb::cases
