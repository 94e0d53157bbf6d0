// SPDX-License-Identifier: Apache-2.0
//
// Captures a step once per batch descriptor and replays it   [10.2, 10.3]. There is one runner per
// kind of graph and model; all its graphs allocate from one pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/graphs/captured_graph.h"
#include "decode/graphs/step_segments.h"

namespace plumb::device::decode {

class GraphRunner {
 public:
  explicit GraphRunner(const StepSegments& segments, const StepSite& site);
  virtual ~GraphRunner() = default;
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // Runs a warm-up, then captures. The inputs of a step of this extent are in their buffers.
  // Replaces existing graphs of this key. Throws std::logic_error if a capture is in progress.
  void capture(const BatchDescriptor& key, const Extent& extent);
  virtual bool has(const BatchDescriptor& key) const = 0;
  // Enqueues the replay. Segments that break run with a fresh attention state on extent.attended
  // tokens. Returns the number of graphs launched. Throws std::out_of_range for a key that was not
  // captured.
  virtual int replay(const BatchDescriptor& key, const Extent& extent) = 0;
  virtual std::vector<GraphNode> nodes(const BatchDescriptor& key) const = 0;
  // Whether all memory whose addresses graphs captured is still allocated to its owner.
  virtual bool owns_what_it_captured() const { return true; }

 protected:
  virtual void capture_in_pool(const BatchDescriptor& key, const Extent& extent) = 0;
  CapturePolicy::State make_state() const;
  CapturePolicy::State next_state(const CapturePolicy::State& before) const;  // for a replay
  void launch(const CapturedGraph& graph) const;

  const StepSegments& segments_;
  const StepSite site_;

 private:
  CachingAllocator::Pool pool_;
};

// The whole step in one graph, including the attention of padding requests.
class FullGraphs final : public GraphRunner {
 public:
  using GraphRunner::GraphRunner;
  bool has(const BatchDescriptor& key) const override { return graphs_.contains(key); }
  int replay(const BatchDescriptor& key, const Extent& extent) override;
  std::vector<GraphNode> nodes(const BatchDescriptor& key) const override;
  bool owns_what_it_captured() const override;

 private:
  void capture_in_pool(const BatchDescriptor& key, const Extent& extent) override;

  struct CapturedStep {
    CapturePolicy::State kept;
    std::weak_ptr<AttentionState> addresses;  // expires if the captured state is freed
    CapturedGraph graph;                      // last member: destroyed first
  };
  std::map<BatchDescriptor, CapturedStep> graphs_;
};

// One graph per piece that does not break. At replay the step calls the pieces that break.
class PiecewiseGraphs final : public GraphRunner {
 public:
  using GraphRunner::GraphRunner;
  bool has(const BatchDescriptor& key) const override { return graphs_.contains(key); }
  int replay(const BatchDescriptor& key, const Extent& extent) override;
  std::vector<GraphNode> nodes(const BatchDescriptor& key) const override;

 private:
  void capture_in_pool(const BatchDescriptor& key, const Extent& extent) override;

  std::map<BatchDescriptor, std::vector<CapturedGraph>> graphs_;
  CapturePolicy::State live_;  // attention state of the latest replay
};

}  // namespace plumb::device::decode
