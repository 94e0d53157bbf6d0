// SPDX-License-Identifier: Apache-2.0
//
// Captures a step once per batch descriptor and replays it   [10.2, 10.3]. One runner per kind of
// graph and model; all its buckets take their memory from one pool.
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

  // Warm-up, then capture. The inputs of a step of that extent stand in its buffers. Replaces the
  // graphs of this key, if there are any. Throws std::logic_error inside a capture.
  void capture(const BatchDescriptor& key, const Extent& extent);
  virtual bool has(const BatchDescriptor& key) const = 0;
  // Enqueues the replay; breaks run on a fresh state, and on as many tokens as `extent` says have
  // metadata. Returns the number of graphs launched. Throws std::out_of_range for what was not
  // captured.
  virtual int replay(const BatchDescriptor& key, const Extent& extent) = 0;
  virtual std::vector<GraphNode> nodes(const BatchDescriptor& key) const = 0;
  // Whether everything that graphs captured the addresses of is still theirs.
  virtual bool owns_what_it_captured() const { return true; }

 protected:
  virtual void capture_in_pool(const BatchDescriptor& key, const Extent& extent) = 0;
  CapturePolicy::State make_state() const;
  CapturePolicy::State next_state(const CapturePolicy::State& before) const;  // of a replay
  void launch(const CapturedGraph& graph) const;

  const StepSegments& segments_;
  const StepSite site_;

 private:
  CachingAllocator::Pool pool_;
};

// The whole step in one graph, with the attention of padding requests.
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
    std::weak_ptr<AttentionState> addresses;  // of what the graph has them
    CapturedGraph graph;                      // last member: destroyed first
  };
  std::map<BatchDescriptor, CapturedStep> graphs_;
};

// A graph per piece that does not break. What breaks is not recorded: the step calls it.
class PiecewiseGraphs final : public GraphRunner {
 public:
  using GraphRunner::GraphRunner;
  bool has(const BatchDescriptor& key) const override { return graphs_.contains(key); }
  int replay(const BatchDescriptor& key, const Extent& extent) override;
  std::vector<GraphNode> nodes(const BatchDescriptor& key) const override;

 private:
  void capture_in_pool(const BatchDescriptor& key, const Extent& extent) override;

  std::map<BatchDescriptor, std::vector<CapturedGraph>> graphs_;
  CapturePolicy::State live_;  // of the latest replay
};

}  // namespace plumb::device::decode
