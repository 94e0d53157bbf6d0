// SPDX-License-Identifier: Apache-2.0
#include "device/decode/graph_runner.h"

#include <algorithm>
#include <utility>

namespace plumb::device::decode {

GraphRunner::GraphRunner(Device& device, Stream stream, const Geometry& geometry, Forward forward,
                         CapturePolicy::MakeState make_state, const CapturePolicy& policy)
    : device_(device),
      stream_(stream),
      geometry_(geometry),
      forward_(std::move(forward)),
      make_state_(std::move(make_state)),
      policy_(policy) {}

GraphRunner::~GraphRunner() {
  for (const auto& [tokens, captured] : graphs_) destroy(captured);
}

void GraphRunner::destroy(const Captured& captured) {
  device_.destroy_graph_exec(captured.exec);
  device_.destroy_graph(captured.graph);
}

std::optional<std::int64_t> GraphRunner::size_for(std::int64_t tokens) const {
  const auto& sizes = geometry_.capture_sizes;
  const auto found = std::lower_bound(sizes.begin(), sizes.end(), tokens);
  if (found == sizes.end()) return std::nullopt;
  return *found;
}

void GraphRunner::capture(std::int64_t tokens) {
  const CapturePolicy::State warm_up = make_state_();
  forward_(tokens, *warm_up);
  device_.synchronize(stream_);
  const CapturePolicy::Choice choice = policy_.choose(warm_up, make_state_);
  device_.begin_capture(stream_);
  forward_(tokens, *choice.captured);
  Captured captured;
  captured.graph = device_.end_capture(stream_);
  captured.exec = device_.instantiate(captured.graph);
  captured.kept = choice.kept;
  if (const auto old = graphs_.find(tokens); old != graphs_.end()) destroy(old->second);
  graphs_[tokens] = std::move(captured);
}

void GraphRunner::replay(std::int64_t tokens) { device_.replay(graphs_.at(tokens).exec, stream_); }

std::vector<GraphNode> GraphRunner::nodes(std::int64_t tokens) const {
  return device_.nodes(graphs_.at(tokens).graph);
}

}  // namespace plumb::device::decode
