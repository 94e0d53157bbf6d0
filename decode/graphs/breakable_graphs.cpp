// SPDX-License-Identifier: Apache-2.0
#include "decode/graphs/breakable_graphs.h"

#include <algorithm>

#include "device/find_in.h"

namespace plumb::device::decode {

// During the capture, the segments that break run on the warm-up's results, because captured
// kernels do not execute. A graph between two breaks, or before the first break, may be empty.
void BreakableGraphs::capture_in_pool(const BatchDescriptor& key, const Extent& extent) {
  segments_.run_in_pieces(extent, *make_state());
  site_.device.synchronize(site_.stream);
  const CapturePolicy::State state = make_state();
  std::vector<Entry> sequence;
  const auto& pieces = segments_.pieces();
  auto next = pieces.begin();
  const auto capture_up_to_a_break = [&] {
    for (; next != pieces.end() && !next->breaks; ++next) {
      segments_.run_piece(*next, extent, *state);
    }
  };
  sequence.emplace_back(CapturedGraph(site_.device, site_.stream, capture_up_to_a_break));
  while (next != pieces.end()) {
    const Closure closure = closure_of(*next++, extent);
    closure(extent, *state);
    sequence.emplace_back(closure);
    sequence.emplace_back(CapturedGraph(site_.device, site_.stream, capture_up_to_a_break));
  }
  sequences_.erase(key);
  sequences_.emplace(key, std::move(sequence));
}

// At replay a closure uses at most the rows that its tensors had at the capture, even if the step
// is longer.
BreakableGraphs::Closure BreakableGraphs::closure_of(const StepSegments::Piece& piece,
                                                     const Extent& extent) const {
  const auto arguments = site_.policies.breaks->hold(
      std::make_shared<const BreakArguments>(BreakArguments{.rows = extent.tokens}));
  return [this, piece, arguments](const Extent& live, AttentionState& state) {
    const std::int64_t rows = arguments->rows;
    segments_.run_piece(piece, {rows, std::min(live.attended, rows), live.plan}, state);
  };
}

int BreakableGraphs::replay(const BatchDescriptor& key, const Extent& extent) {
  live_ = next_state(live_);
  int launched = 0;
  for (const Entry& entry : find_in(sequences_, key, no_graph_of(key))) {
    if (const auto* graph = std::get_if<CapturedGraph>(&entry)) {
      launch(*graph);
      ++launched;
    } else {
      std::get<Closure>(entry)(extent, *live_);
    }
  }
  return launched;
}

std::vector<GraphNode> BreakableGraphs::nodes(const BatchDescriptor& key) const {
  std::vector<GraphNode> all;
  for (const Entry& entry : find_in(sequences_, key, no_graph_of(key))) {
    const auto* graph = std::get_if<CapturedGraph>(&entry);
    if (graph == nullptr) continue;
    const auto more = graph->nodes();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<bool> BreakableGraphs::sequence(const BatchDescriptor& key) const {
  std::vector<bool> graphs;
  for (const Entry& entry : find_in(sequences_, key, no_graph_of(key))) {
    graphs.push_back(std::holds_alternative<CapturedGraph>(entry));
  }
  return graphs;
}

}  // namespace plumb::device::decode
