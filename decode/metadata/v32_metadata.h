// SPDX-License-Identifier: Apache-2.0
//
// Metadata of a V3.2 step on ROCm. Each token's request and slot list are in buffers with fixed
// addresses; a step rewrites only the entries that it needs   [3.1, 3.2]. The plan of the attention
// is kept from step to step as long as the key is equal   [3.3]. The planner is FlashMLA's over
// ranges, because plumb has no op for AITER's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "decode/engine/calls.h"
#include "decode/engine/memory.h"
#include "decode/engine/model.h"
#include "decode/metadata/attention_state.h"
#include "decode/policies/v32_policies.h"

namespace plumb::device::decode {

// AITER's kv_granularity, in candidates; overhead of the tile planner, in blocks.
inline constexpr std::int32_t kPlanGranularity = 16, kPlanOverhead = 5;

class V32Metadata {
 public:
  V32Metadata(const Geometry& geometry, Device& device, Stream stream, EngineMemory& memory,
              V32Policies policies);

  // Enqueues the kernels that build the metadata of a step. Never captured.
  void build(const Caller& call, const StepInputs& inputs, const StepPlan& plan);

  std::int32_t* req_id_per_token() const { return req_id_per_token_; }  // [max_tokens]
  std::int32_t* paged_kv_indptr() const { return paged_kv_indptr_; }    // [max_tokens + 1]
  // [max_tokens * top_k]. Each layer writes it after its indexer.
  std::int32_t* paged_kv_indices() const { return paged_kv_indices_; }
  MlaState& attention() { return attention_; }
  PlanCounts counts() const { return counts_; }
  // Of the latest build. Nothing: the plan is an earlier step's.
  const std::optional<StepPart>& made_plan() const { return made_plan_; }

 private:
  void initialise(Device& device, Stream stream);
  void build_buffers(const Caller& call, const StepInputs& inputs, const StepPlan& plan);
  // `ranges` [attended + 1]: the candidates of each token.
  void build_plan(const Caller& call, const StepPlan& plan, const std::int32_t* ranges);

  const Geometry& geometry_;
  Device& device_;
  V32Policies policies_;
  std::int32_t* req_id_per_token_;
  std::int32_t* paged_kv_indptr_;
  std::int32_t* paged_kv_indices_;
  // Arguments of AITER's attention. plumb's attention does not need them: a row is one token and a
  // page is one slot.
  std::int32_t* qo_indptr_;                      // [max_tokens + 1]: 0, 1, 2, ...
  std::int32_t* paged_kv_last_page_len_;         // [max_tokens]: ones
  std::int32_t* extents_;                        // [2]: tokens, entries of the step before
  std::int32_t *spare_extents_, *spare_indptr_;  // stand-ins where a policy skips an update
  MlaState attention_;
  std::map<std::int64_t, PlanKeyPolicy::Key> keys_;  // key of the latest plan, by builder
  PlanCounts counts_;
  std::optional<StepPart> made_plan_;
};

}  // namespace plumb::device::decode
