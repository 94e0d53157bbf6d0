// SPDX-License-Identifier: Apache-2.0
//
// Decides when V3.2's tile plan is made again: when the key of the current step differs from the
// key of the step that the plan was made for   [3.3].
#pragma once

#include <cstdint>
#include <vector>

#include "decode/engine/step_inputs.h"

namespace plumb::device::decode {

// Values of a step from which its key is made.
struct KeyedStep {
  std::int64_t tokens = 0;  // tokens with metadata
  std::int64_t max_query_len = 0, heads = 0;
  std::vector<std::int32_t> query_lens;  // query tokens per request, padding included
  // Context length per request, cut to topk + query_len - 1 (topk for a single query token). A
  // token attends min(position + 1, topk) tokens, so from that length on the plan no longer depends
  // on the length.
  std::vector<std::int32_t> lengths;
};
KeyedStep keyed_step(const Geometry& geometry, const StepPlan& plan);

class PlanKeyPolicy {
 public:
  virtual ~PlanKeyPolicy() = default;
  using Key = std::vector<std::int64_t>;
  // query_lens and lengths determine how many tokens each row attends, so steps with equal keys
  // have equal plans. AITER's own key lacks query_lens and cuts lengths to topk, which gives equal
  // plans only if every request has one query token.
  virtual Key key(const KeyedStep& step) const;
  // Number of the builder that remembers the key. All steps share one plan buffer, so there is one
  // builder (0). With several, each would take a plan that another one wrote for its own [hazards
  // B8].
  virtual std::int64_t builder(const StepPlan& /*plan*/) const { return 0; }
  // Whether the planner gets the ranges that the step before has left: those of this step.
  virtual bool plans_earlier_ranges() const { return false; }
};

}  // namespace plumb::device::decode
