// SPDX-License-Identifier: Apache-2.0
//
// A model as an engine drives it: metadata before the step, then the step in segments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/decode/attention_state.h"
#include "device/decode/calls.h"
#include "device/decode/step_inputs.h"

namespace plumb::device::decode {

// What a step runs on. `tokens` are those of the padded batch; a captured step has the plan that it
// was captured with.
struct StepContext {
  const Caller& call;
  const StepInputs& inputs;
  AttentionState& attention;
  std::int64_t tokens = 0;
  const StepPlan& plan;
};

// A segment that breaks cannot be part of a piecewise graph: the indexer and the attention, whose
// metadata belongs to the step   [10.5].
struct Segment {
  std::string name;
  bool breaks = false;
  std::function<void(const StepContext&)> run;
};

// A paged cache of a layer.
struct CacheView {
  std::string name;
  Cache cache = Cache::window;
  const std::uint8_t* data = nullptr;
  std::int64_t page = 1, block_bytes = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  // Enqueues what has to be there before a step of this plan. Never captured: the host does it
  // before each replay.
  virtual void build_metadata(const Caller& call, const StepInputs& inputs,
                              const StepPlan& plan) = 0;
  // The step, in order; valid as long as the model is.
  virtual std::vector<Segment> segments() = 0;
  // Enqueues the cache writers of all layers for tokens that nobody computes here: what earlier
  // steps would have left at the slots of `inputs`.
  virtual void fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens) = 0;
  virtual std::vector<CacheView> caches() const = 0;
  virtual const std::uint16_t* out() const = 0;  // bf16 [tokens, hidden]
};

}  // namespace plumb::device::decode
