// SPDX-License-Identifier: Apache-2.0
//
// Choices of the host about a step and its graphs. Defaults are right; faults override them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "decode/engine/model.h"
#include "decode/graphs/graph_mode.h"
#include "decode/metadata/attention_state.h"
#include "device/caching_allocator.h"

namespace plumb::device::decode {

// Attention states of a FULL capture, and the replay of its graph.
class CapturePolicy {
 public:
  virtual ~CapturePolicy() = default;
  using State = std::shared_ptr<AttentionState>;
  using MakeState = std::function<State()>;
  using RunStep = std::function<void(AttentionState&)>;
  struct Choice {
    State captured, kept;
  };
  // `captured`: state used by the capture; `kept`: state that lives as long as the graph. The right
  // choice is one fresh state for both. The warm-up's state is planned already, so its graph would
  // contain no planner, and every replay would use the warm-up's lengths. If the fresh state were
  // freed, the graph would hold addresses that belong to someone else   [vLLM #42444].
  virtual Choice choose(const State& /*warm_up*/, const MakeState& make) const {
    const State fresh = make();
    return {fresh, fresh};
  }
  // Attention state of a step whose attention runs outside of graphs: a fresh one for each step.
  // The state of the step before has a plan for other lengths.
  virtual State for_step(const State& /*before*/, const MakeState& make) const { return make(); }
  // Called with the state before a capture. Default: nothing runs. A fault runs the planner here,
  // outside of the graph, so that it plans once, for the lengths of the capture   [vLLM #36611].
  virtual void before_capture(AttentionState& /*captured*/, const RunStep& /*run*/) const {}
  // Replays the graph. A fault that replays nothing leaves the results of the step before.
  virtual void replay(Device& device, GraphExec graph, Stream stream) const {
    device.replay(graph, stream);
  }
};

// Arguments that a segment that breaks gets when the graphs around it are captured.
struct BreakArguments {
  std::int64_t rows = 0;  // rows of its tensors: the padded tokens
};

class BreakPolicy {
 public:
  virtual ~BreakPolicy() = default;
  // Runs a segment that breaks. It writes its results in place, where the next graph reads them. A
  // graph would not read a newly allocated result   [vLLM #43746].
  virtual void run(const Segment& segment, const StepContext& step, std::int64_t /*rows*/,
                   CachingAllocator& /*memory*/) const {
    segment.run(step);
  }
  // How a closure holds its arguments: as their owner. Arguments held weakly are freed after the
  // capture, and a replay would find there what a later capture wrote   [vLLM #43746].
  using Arguments = std::shared_ptr<const BreakArguments>;
  virtual Arguments hold(const Arguments& arguments) const { return arguments; }
};

// Choices that determine the sizes of a step.
class ShapePolicy {
 public:
  virtual ~ShapePolicy() = default;
  // Rows of the captured segments: the padded tokens, which the host knows. Asking the device for
  // the number of valid tokens would be a host synchronisation, which a capture forbids [vLLM
  // #42604].
  virtual std::int64_t rows(std::int64_t padded, const StepInputs& /*inputs*/, Device& /*device*/,
                            Stream /*stream*/) const {
    return padded;
  }
  // Key that a graph is stored under: the padded batch. If the key also depends on the step's data,
  // every step is a new shape and is captured again   [vLLM #42604].
  virtual BatchDescriptor key(const BatchDescriptor& padded, const StepPlan& /*plan*/) const {
    return padded;
  }
};

// How inputs are copied to the persistent buffers.
class TransferPolicy {
 public:
  virtual ~TransferPolicy() = default;
  // Stream of the copies: the step's own, after the previous replay, which reads the same buffers.
  // On a separate stream the copies could run during that replay   [vLLM #42604].
  virtual Stream stream(Stream step, Stream /*own*/) const { return step; }
};

}  // namespace plumb::device::decode
