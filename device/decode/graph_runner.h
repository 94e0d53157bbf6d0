// SPDX-License-Identifier: Apache-2.0
//
// Captures a step once per size and replays it   [10.2, 10.3].
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "device/decode/attention_state.h"

namespace plumb::device::decode {

// Which attention state a FULL capture starts from, and which lives as long as its graph.
class CapturePolicy {
 public:
  virtual ~CapturePolicy() = default;
  using State = std::shared_ptr<AttentionState>;
  using MakeState = std::function<State()>;
  struct Choice {
    State captured, kept;
  };
  // A fresh one: the warm-up's is planned already, so that the graph would contain no planner and
  // every replay would use the lengths of the warm-up   [vLLM #42444].
  virtual Choice choose(const State& /*warm_up*/, const MakeState& make) const {
    const State fresh = make();
    return {fresh, fresh};
  }
};

class GraphRunner {
 public:
  // Enqueues a whole step on a state.
  using Forward = std::function<void(std::int64_t tokens, AttentionState& state)>;

  GraphRunner(Device& device, Stream stream, const Geometry& geometry, Forward forward,
              CapturePolicy::MakeState make_state, const CapturePolicy& policy);
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // The size to which a step of so many tokens is padded; nothing: no captured size is enough.
  std::optional<std::int64_t> size_for(std::int64_t tokens) const;
  // Warm-up, then capture. The inputs of a step of that size stand in its buffers.
  void capture(std::int64_t tokens);
  bool has(std::int64_t tokens) const { return graphs_.contains(tokens); }
  // Enqueues the replay. Throws std::out_of_range for a size that was not captured.
  void replay(std::int64_t tokens);
  std::vector<GraphNode> nodes(std::int64_t tokens) const;

 private:
  struct Captured {
    Graph graph = nullptr;
    GraphExec exec = nullptr;
    CapturePolicy::State kept;
  };
  void destroy(const Captured& captured);

  Device& device_;
  Stream stream_;
  const Geometry& geometry_;
  Forward forward_;
  CapturePolicy::MakeState make_state_;
  const CapturePolicy& policy_;
  std::map<std::int64_t, Captured> graphs_;
};

}  // namespace plumb::device::decode
