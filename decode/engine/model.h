// SPDX-License-Identifier: Apache-2.0
//
// A model as an engine drives it: metadata before the step, then the step in segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decode/engine/calls.h"
#include "decode/engine/step_inputs.h"
#include "decode/graphs/graph_mode.h"
#include "decode/metadata/attention_state.h"

namespace plumb::device::decode {

// What a segment runs on: `tokens` are those of the padded batch, of a segment that breaks those
// with metadata. A captured step has the plan that it was captured with.
struct StepContext {
  const Caller& call;
  const StepInputs& inputs;
  AttentionState& attention;
  std::int64_t tokens = 0;
  const StepPlan& plan;

  // Those that decode, of a segment with metadata; its tensors may have fewer rows than the plan.
  std::int64_t decode_rows() const { return std::min(plan.decode_rows(), tokens); }
};

// A segment that breaks cannot be part of a piecewise graph: the indexer and the attention, whose
// metadata belongs to the step   [10.5].
struct Segment {
  std::string name;
  bool breaks = false;
  std::function<void(const StepContext&)> run;
  // Of one that breaks: bytes per token of what it hands on, and a way to have it elsewhere from
  // now on. Correct engines leave it where it is.
  std::int64_t result_bytes = 0;
  std::function<void(void*)> return_at;
};

// Each byte of attention rows that no step has attended: what stands behind the live ones as long
// as attention breaks. Numbers (bf16 0x4040 is 3), for ops on such rows have no others to expect,
// and not zeros, which would hide who reads them.
inline constexpr std::uint8_t kUnattended = 0x40;

// Of a plan that is kept from step to step: how often it was made, and how often that of an earlier
// step would do.
struct PlanCounts {
  std::int64_t made = 0, kept = 0;
};

// A paged cache of a layer.
struct CacheView {
  std::string name;
  Cache cache = Cache::window;
  std::uint8_t* data = nullptr;
  std::int64_t page = 1, block_bytes = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual ModelTraits traits() const = 0;
  // Enqueues what has to be there before a step of this plan. Never captured: the host does it
  // before each replay.
  virtual void build_metadata(const Caller& call, const StepInputs& inputs,
                              const StepPlan& plan) = 0;
  // The step, in order; valid as long as the model is.
  virtual std::vector<Segment> segments() = 0;
  // Enqueues the cache writers of all layers for tokens that nobody computes here: what earlier
  // steps would have left at the slots of `inputs`.
  virtual void fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens) = 0;
  virtual PlanCounts plan_counts() const { return {}; }
  virtual std::vector<CacheView> caches() const = 0;
  virtual const std::uint16_t* out() const = 0;  // bf16 [tokens, hidden]
  // bf16 [tokens, 4, hidden] behind the last layer. nullptr: no drafter can go on from this model.
  virtual const std::uint16_t* final_streams() const { return nullptr; }
};

}  // namespace plumb::device::decode
