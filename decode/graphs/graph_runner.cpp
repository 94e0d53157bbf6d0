// SPDX-License-Identifier: Apache-2.0
#include "decode/graphs/graph_runner.h"

#include <algorithm>
#include <stdexcept>

#include "device/find_in.h"

namespace plumb::device::decode {

GraphRunner::GraphRunner(const StepSegments& segments, const StepSite& site)
    : segments_(segments), site_(site), pool_(site.memory.create_pool()) {}

void GraphRunner::capture(const BatchDescriptor& key, const Extent& extent) {
  if (site_.device.capturing()) throw std::logic_error("a capture of a step inside a capture");
  const PoolScope scope(site_.memory, pool_);
  capture_in_pool(key, extent);
}

CapturePolicy::State GraphRunner::make_state() const {
  return std::make_shared<AttentionState>(site_.geometry, site_.memory);
}

CapturePolicy::State GraphRunner::next_state(const CapturePolicy::State& before) const {
  return site_.policies.capture->for_step(before, [this] { return make_state(); });
}

void GraphRunner::launch(const CapturedGraph& graph) const {
  site_.policies.capture->replay(site_.device, graph.exec(), site_.stream);
}

void FullGraphs::capture_in_pool(const BatchDescriptor& key, const Extent& extent) {
  const auto run = [&](AttentionState& state) { segments_.run(extent, state); };
  const CapturePolicy::State warm_up = make_state();
  run(*warm_up);
  site_.device.synchronize(site_.stream);
  const CapturePolicy& policy = *site_.policies.capture;
  const auto choice = policy.choose(warm_up, [this] { return make_state(); });
  policy.before_capture(*choice.captured, run);
  CapturedGraph graph(site_.device, site_.stream, [&] { run(*choice.captured); });
  graphs_.erase(key);
  graphs_.emplace(key, CapturedStep{choice.kept, choice.captured, std::move(graph)});
}

int FullGraphs::replay(const BatchDescriptor& key, const Extent&) {
  launch(find_in(graphs_, key, no_graph_of(key)).graph);
  return 1;
}

std::vector<GraphNode> FullGraphs::nodes(const BatchDescriptor& key) const {
  return find_in(graphs_, key, no_graph_of(key)).graph.nodes();
}

bool FullGraphs::owns_what_it_captured() const {
  return std::none_of(graphs_.begin(), graphs_.end(),
                      [](const auto& entry) { return entry.second.addresses.expired(); });
}

// The attention state of the warm-up is also used during the capture: piecewise graphs contain no
// address of it.
void PiecewiseGraphs::capture_in_pool(const BatchDescriptor& key, const Extent& extent) {
  segments_.run_in_pieces(extent, *make_state());
  site_.device.synchronize(site_.stream);
  const CapturePolicy::State state = make_state();
  std::vector<CapturedGraph> graphs;
  for (const StepSegments::Piece& piece : segments_.pieces()) {
    const auto run = [&] { segments_.run_piece(piece, extent, *state); };
    if (piece.breaks) {
      run();
    } else {
      graphs.emplace_back(site_.device, site_.stream, run);
    }
  }
  graphs_.erase(key);
  graphs_.emplace(key, std::move(graphs));
}

int PiecewiseGraphs::replay(const BatchDescriptor& key, const Extent& extent) {
  live_ = next_state(live_);
  const std::vector<CapturedGraph>& graphs = find_in(graphs_, key, no_graph_of(key));
  auto next = graphs.begin();
  for (const StepSegments::Piece& piece : segments_.pieces()) {
    if (piece.breaks) {
      segments_.run_piece(piece, extent, *live_);
    } else {
      launch(*next++);
    }
  }
  return static_cast<int>(graphs.size());
}

std::vector<GraphNode> PiecewiseGraphs::nodes(const BatchDescriptor& key) const {
  std::vector<GraphNode> all;
  for (const CapturedGraph& graph : find_in(graphs_, key, no_graph_of(key))) {
    const auto more = graph.nodes();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace plumb::device::decode
