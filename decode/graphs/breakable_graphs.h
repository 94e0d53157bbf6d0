// SPDX-License-Identifier: Apache-2.0
//
// A capture that is interrupted by segments that break: [graph, closure, graph, ...], replayed in
// order   [10.5]. The step ends a graph when it comes to such a segment, so that the runner need
// not know the pieces in advance.
#pragma once

#include <functional>
#include <map>
#include <variant>
#include <vector>

#include "decode/graphs/graph_runner.h"

namespace plumb::device::decode {

class BreakableGraphs final : public GraphRunner {
 public:
  using GraphRunner::GraphRunner;
  bool has(const BatchDescriptor& key) const override { return sequences_.contains(key); }
  int replay(const BatchDescriptor& key, const Extent& extent) override;
  std::vector<GraphNode> nodes(const BatchDescriptor& key) const override;
  // For each entry of a key, in order: true for a graph, false for a closure.
  std::vector<bool> sequence(const BatchDescriptor& key) const;

 private:
  // A segment that breaks, with the arguments it had at the capture. The metadata of the live step
  // is passed at each replay instead.
  using Closure = std::function<void(const Extent& live, AttentionState& state)>;
  using Entry = std::variant<CapturedGraph, Closure>;

  void capture_in_pool(const BatchDescriptor& key, const Extent& extent) override;
  Closure closure_of(const StepSegments::Piece& piece, const Extent& extent) const;

  std::map<BatchDescriptor, std::vector<Entry>> sequences_;
  CapturePolicy::State live_;  // attention state of the latest replay
};

}  // namespace plumb::device::decode
