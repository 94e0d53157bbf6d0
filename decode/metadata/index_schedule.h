// SPDX-License-Identifier: Apache-2.0
//
// Which slot of the indexer's logits kernel works on which segments   [5.7]: made once in front of
// a step, from the lengths of what decodes, in a buffer that keeps its address. All layers read it.
#pragma once

#include <plumb/ops/indexer.h>

#include <cstdint>
#include <memory>

#include "decode/engine/calls.h"
#include "decode/engine/geometry.h"
#include "decode/engine/model_site.h"
#include "decode/engine/step_inputs.h"
#include "decode/policies/index_policy.h"

namespace plumb::device::decode {

class IndexSchedule {
 public:
  IndexSchedule(const Geometry& geometry, const ModelSite& site);

  // Enqueues the planner. Never captured: the host does it before each replay.
  void build(const Caller& call, const StepInputs& inputs, const StepPlan& plan);
  // Into a call of the logits of such a step.
  void hand_out(plumb_fp8_paged_mqa_logits_params& logits) const;

 private:
  void call_planner(const Caller& call, const ScheduledLengths& lengths) const;
  void move();

  const Geometry& geometry_;
  const IndexPolicy& policy_;
  const std::unique_ptr<PlannerLengths> lengths_;
  Device& device_;
  CachingAllocator& temporaries_;
  std::int32_t *schedule_, *moved_ = nullptr;  // [plan_parts + 1, 2]
  ScheduledShape made_for_;
};

}  // namespace plumb::device::decode
