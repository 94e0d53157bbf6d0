// SPDX-License-Identifier: Apache-2.0
//
// Interface of a model to the engine: it builds metadata before a step, then runs the step in
// segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "decode/engine/calls.h"
#include "decode/engine/step_inputs.h"
#include "decode/graphs/graph_mode.h"
#include "decode/metadata/attention_state.h"

namespace plumb::device::decode {

// Arguments of a segment. `tokens`: tokens of the padded batch; for a segment that breaks the
// graph, the tokens with metadata. A captured step keeps the plan of its capture.
struct StepContext {
  const Caller& call;
  const StepInputs& inputs;
  AttentionState& attention;
  std::int64_t tokens = 0;
  const StepPlan& plan;

  // Tokens of requests that decode, for a segment with metadata. Its tensors may have fewer rows
  // than the plan.
  std::int64_t decode_rows() const { return std::min(plan.decode_rows(), tokens); }
};

// A segment of a step. One that breaks cannot be captured in a piecewise graph: the indexer and the
// attention, because their metadata is that of one step   [10.5].
struct Segment {
  std::string name;
  bool breaks = false;
  std::function<void(const StepContext&)> run;
  // For a segment that breaks: bytes per token of its result, and a function that moves the result
  // to another address from now on. A right engine never calls it.
  std::int64_t result_bytes = 0;
  std::function<void(void*)> return_at;
};

// Value of each byte in attention rows that no step has computed: rows after the live ones, as long
// as attention breaks the graph. The bytes are finite numbers (bf16 0x4040 is 3), so that ops on
// such rows have an expected result. Zeros would hide a kernel that reads these rows.
inline constexpr std::uint8_t kUnattended = 0x40;

// Counts of a plan that is kept from step to step: how often it was made, and how often the plan of
// an earlier step was used again.
struct PlanCounts {
  std::int64_t made = 0, kept = 0;
};

// What is filled outside of steps: all entries of the tokens, or only the entries of tokens,
// without the compressed states that the tokens complete.
enum class Filled { everything, windows };

// A paged cache of one layer.
struct CacheView {
  std::string name;
  Cache cache = Cache::window;
  std::uint8_t* data = nullptr;
  std::int64_t page = 1, block_bytes = 0;
  // The elements of a block's entries lie one behind the other from its start, so many bytes each.
  std::int64_t entry_bytes = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual ModelTraits traits() const = 0;
  // Enqueues the ops that build the metadata of a step with this plan. Never captured: the host
  // enqueues them before each replay.
  virtual void build_metadata(const Caller& call, const StepInputs& inputs,
                              const StepPlan& plan) = 0;
  // Segments of the step, in order. They are valid as long as the model.
  virtual std::vector<Segment> segments() = 0;
  // Enqueues the cache writers of all layers for tokens of one request whose forward pass is not
  // run here: they write what earlier steps would have left at the slots of `inputs`.
  virtual void fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                           Filled filled) = 0;
  virtual PlanCounts plan_counts() const { return {}; }
  // The part in which the latest metadata made a plan that is kept. Nothing: it made none.
  virtual std::optional<StepPart> made_plan() const { return std::nullopt; }
  virtual std::vector<CacheView> caches() const = 0;
  virtual const std::uint16_t* out() const = 0;  // bf16 [tokens, hidden]
  // bf16 [tokens, 4, hidden]: residual streams after the last layer. nullptr: the model supports no
  // drafter.
  virtual const std::uint16_t* final_streams() const { return nullptr; }
};

}  // namespace plumb::device::decode
