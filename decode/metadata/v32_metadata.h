// SPDX-License-Identifier: Apache-2.0
//
// The metadata of a V3.2 step on ROCm: which request each token belongs to and where its slots
// stand, in buffers that keep their addresses and of which a step rewrites what it needs
// [3.1, 3.2]; and the plan of the attention, kept from step to step as long as the key is the same
// [3.3]. plumb's tile planner stands in for AITER's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "decode/engine/calls.h"
#include "decode/engine/memory.h"
#include "decode/engine/model.h"
#include "decode/metadata/attention_state.h"
#include "decode/policies/v32_policies.h"

namespace plumb::device::decode {

// Of the plan, in candidates and in blocks: AITER's kv_granularity, and the tile planner's own.
inline constexpr std::int32_t kPlanGranularity = 16, kPlanOverhead = 5;

class V32Metadata {
 public:
  V32Metadata(const Geometry& geometry, Device& device, Stream stream, EngineMemory& memory,
              V32Policies policies);

  // Enqueues the kernels of a step. Never captured.
  void build(const Caller& call, const StepInputs& inputs, const StepPlan& plan);

  std::int32_t* req_id_per_token() const { return req_id_per_token_; }  // [max_tokens]
  std::int32_t* paged_kv_indptr() const { return paged_kv_indptr_; }    // [max_tokens + 1]
  // [max_tokens * top_k], written by each layer after its indexer.
  std::int32_t* paged_kv_indices() const { return paged_kv_indices_; }
  MlaState& attention() { return attention_; }
  PlanCounts counts() const { return counts_; }

 private:
  void initialise(Device& device, Stream stream);
  void build_buffers(const Caller& call, const StepInputs& inputs, const StepPlan& plan);
  void build_plan(const Caller& call, const StepPlan& plan);

  const Geometry& geometry_;
  Device& device_;
  V32Policies policies_;
  std::int32_t* req_id_per_token_;
  std::int32_t* paged_kv_indptr_;
  std::int32_t* paged_kv_indices_;
  // AITER's attention takes these two; plumb's knows that a row is one token and a page one slot.
  std::int32_t* qo_indptr_;                      // [max_tokens + 1]: 0, 1, 2, ...
  std::int32_t* paged_kv_last_page_len_;         // [max_tokens]: ones
  std::int32_t* extents_;                        // [2]: tokens and entries of the step before
  std::int32_t *spare_extents_, *spare_indptr_;  // for policies that do not keep all of theirs
  MlaState attention_;
  std::map<std::int64_t, PlanKeyPolicy::Key> keys_;  // by builder: of the step it made a plan for
  PlanCounts counts_;
};

}  // namespace plumb::device::decode
