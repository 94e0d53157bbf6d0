// SPDX-License-Identifier: Apache-2.0
//
// A capture that stops for what breaks: [graph, closure, graph, ...], replayed in order   [10.5].
// The step itself decides where it ends, so that nothing has to be known of its pieces before.
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
  // Graphs and closures of a key, in order: whether each is a graph.
  std::vector<bool> sequence(const BatchDescriptor& key) const;

 private:
  // A break, with the arguments it had at the capture. The live step's metadata is not among them.
  using Closure = std::function<void(const Extent& live, AttentionState& state)>;
  using Entry = std::variant<CapturedGraph, Closure>;

  void capture_in_pool(const BatchDescriptor& key, const Extent& extent) override;
  Closure closure_of(const StepSegments::Piece& piece, const Extent& extent) const;

  std::map<BatchDescriptor, std::vector<Entry>> sequences_;
  CapturePolicy::State live_;  // of the latest replay
};

}  // namespace plumb::device::decode
