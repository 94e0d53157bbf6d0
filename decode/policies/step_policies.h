// SPDX-License-Identifier: Apache-2.0
//
// What the host decides about a step and its graphs. Each default is right; a class that decides
// otherwise shows what it is worth.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "decode/engine/model.h"
#include "decode/graphs/graph_mode.h"
#include "decode/metadata/attention_state.h"
#include "device/caching_allocator.h"

namespace plumb::device::decode {

// Which attention state a FULL capture starts from, which lives as long as its graph, and what a
// replay is.
class CapturePolicy {
 public:
  virtual ~CapturePolicy() = default;
  using State = std::shared_ptr<AttentionState>;
  using MakeState = std::function<State()>;
  using RunStep = std::function<void(AttentionState&)>;
  struct Choice {
    State captured, kept;
  };
  // A fresh one, which is kept. The warm-up's is planned already, so that the graph would contain
  // no planner and every replay would use the lengths of the warm-up; and a fresh one that is freed
  // leaves the graph with addresses of somebody else   [vLLM #42444].
  virtual Choice choose(const State& /*warm_up*/, const MakeState& make) const {
    const State fresh = make();
    return {fresh, fresh};
  }
  // What attention outside of graphs gets, step after step: a fresh one each. With the one of the
  // step before, it goes by the plan of other lengths.
  virtual State for_step(const State& /*before*/, const MakeState& make) const { return make(); }
  // Nothing runs on it before the capture. A planner that is hoisted out of the graph plans here,
  // once, for the lengths of the capture   [vLLM #36611].
  virtual void before_capture(AttentionState& /*captured*/, const RunStep& /*run*/) const {}
  // One that does nothing leaves what the step before left: fault number one.
  virtual void replay(Device& device, GraphExec graph, Stream stream) const {
    device.replay(graph, stream);
  }
};

// What a segment that breaks was given when the graphs around it were captured.
struct BreakArguments {
  std::int64_t rows = 0;  // of its tensors: the padded tokens
};

class BreakPolicy {
 public:
  virtual ~BreakPolicy() = default;
  // Results are written in place, where the next graph reads them. A fresh tensor that is returned
  // is nothing that a replay looks at   [vLLM #43746].
  virtual void run(const Segment& segment, const StepContext& step, std::int64_t /*rows*/,
                   CachingAllocator& /*memory*/) const {
    segment.run(step);
  }
  // The closure owns its arguments. Held weakly, they are freed when the capture is over, and what
  // the next capture puts there is what an earlier bucket's replay finds   [vLLM #43746].
  using Arguments = std::shared_ptr<const BreakArguments>;
  virtual Arguments hold(const Arguments& arguments) const { return arguments; }
};

// What the sizes of a step follow from.
class ShapePolicy {
 public:
  virtual ~ShapePolicy() = default;
  // Rows of the segments that are captured: the padded tokens, which the host knows. Asking the
  // device how many are valid is a host synchronisation, and in a capture an error [vLLM #42604].
  virtual std::int64_t rows(std::int64_t padded, const StepInputs& /*inputs*/, Device& /*device*/,
                            Stream /*stream*/) const {
    return padded;
  }
  // What a graph is kept under: the padded batch. With slices by what the step's data say, every
  // step is a new shape and captured anew   [vLLM #42604].
  virtual BatchDescriptor key(const BatchDescriptor& padded, const StepPlan& /*plan*/) const {
    return padded;
  }
};

// How inputs reach the persistent buffers.
class TransferPolicy {
 public:
  virtual ~TransferPolicy() = default;
  // On the step's own stream, behind the previous replay, which reads the same buffers. On a stream
  // of their own the copies may come while it is in flight   [vLLM #42604].
  virtual Stream stream(Stream step, Stream /*own*/) const { return step; }
};

}  // namespace plumb::device::decode
