// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/model_runner.h"

#include <algorithm>

#include "decode/graphs/breakable_graphs.h"

namespace plumb::device::decode {

namespace {

Extent extent_of(const StepPlan& plan) { return {plan.tokens, plan.attended, plan}; }

std::unique_ptr<GraphRunner> make_runner(GraphKind kind, const StepSegments& segments,
                                         const StepSite& site) {
  if (kind == GraphKind::full) return std::make_unique<FullGraphs>(segments, site);
  if (kind == GraphKind::piecewise) return std::make_unique<PiecewiseGraphs>(segments, site);
  return std::make_unique<BreakableGraphs>(segments, site);
}

bool in_pieces(GraphKind kind) {
  return kind == GraphKind::piecewise || kind == GraphKind::breakable;
}

BatchDescriptor padded_batch(GraphKind kind, const StepPlan& plan) {
  if (in_pieces(kind)) return {.tokens = plan.tokens, .requests = 0, .uniform = false};
  return {.tokens = plan.tokens, .requests = plan.requests, .uniform = true};
}

}  // namespace

ModelRunner::ModelRunner(Model& model, const std::string& part, GraphMode mode,
                         const StepSite& site)
    : site_(site), traits_(model.traits()), mode_(mode), segments_(model.segments(), part, site) {
  traits_.breaks = segments_.any_breaks();
  require_supported(mode, traits_, site.geometry.query_tokens());
  for (const bool uniform : {false, true}) {
    const GraphKind kind = kind_of(mode, traits_, {.uniform = uniform});
    if (kind == GraphKind::none || runners_.contains(kind)) continue;
    runners_[kind] = make_runner(kind, segments_, site);
  }
}

// A FULL graph holds whole requests only, at most max_requests of them.
bool ModelRunner::has_size(GraphKind kind, std::int64_t tokens) const {
  if (in_pieces(kind)) return true;
  const Geometry& geometry = site_.geometry;
  return tokens % geometry.query_tokens() == 0 && tokens <= geometry.max_decode_tokens();
}

ModelRunner::Dispatch ModelRunner::dispatch(const BatchDescriptor& batch) const {
  const auto& sizes = site_.geometry.capture_sizes;
  const GraphKind kind = kind_of(mode_, traits_, batch);
  const auto size = std::find_if(sizes.begin(), sizes.end(), [&](std::int64_t tokens) {
    return tokens >= batch.tokens && has_size(kind, tokens);
  });
  if (kind == GraphKind::none || size == sizes.end()) return {GraphKind::none, batch.tokens};
  return {kind, *size};
}

bool ModelRunner::outgrows_graphs(const BatchDescriptor& batch) const {
  return kind_of(mode_, traits_, batch) != GraphKind::none &&
         dispatch(batch).kind == GraphKind::none;
}

std::vector<ModelRunner::Dispatch> ModelRunner::captures() const {
  std::vector<Dispatch> all;
  const auto& sizes = site_.geometry.capture_sizes;
  for (const auto& [kind, runner] : runners_) {
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      if (has_size(kind, *size)) all.push_back({kind, *size});
    }
  }
  return all;
}

BatchDescriptor ModelRunner::key(GraphKind kind, const StepPlan& plan) const {
  return site_.policies.shapes->key(padded_batch(kind, plan), plan);
}

void ModelRunner::run(GraphKind kind, const StepPlan& plan) {
  if (kind == GraphKind::none) return run_eagerly(kind, plan);
  if (!runners_.at(kind)->has(key(kind, plan))) capture(kind, plan);
  parts_ = segments_.parts(extent_of(plan), in_pieces(kind), true);
  counters_.graph_launches += runners_.at(kind)->replay(key(kind, plan), extent_of(plan));
}

void ModelRunner::run_eagerly(GraphKind kind, const StepPlan& plan) {
  state_ = site_.policies.capture->for_step(state_, [this] { return make_state(); });
  parts_ = segments_.parts(extent_of(plan), in_pieces(kind), false);
  if (in_pieces(kind)) {
    segments_.run_in_pieces(extent_of(plan), *state_);
  } else {
    segments_.run(extent_of(plan), *state_);
  }
  ++counters_.eager_steps;
}

void ModelRunner::capture(GraphKind kind, const StepPlan& plan) {
  runners_.at(kind)->capture(key(kind, plan), extent_of(plan));
  ++counters_.captures;
  if (!captured_.insert(padded_batch(kind, plan)).second) ++counters_.recaptures;
}

std::vector<GraphNode> ModelRunner::eager_nodes(GraphKind kind, const StepPlan& plan,
                                                Which which) const {
  const auto state = make_state();
  const CapturedGraph probe(site_.device, site_.stream, [&] {
    if (!in_pieces(kind)) return segments_.run(extent_of(plan), *state);
    for (const StepSegments::Piece& piece : segments_.pieces()) {
      if (which == Which::captured && piece.breaks) continue;
      segments_.run_piece(piece, extent_of(plan), *state);
    }
  });
  return probe.nodes();
}

bool ModelRunner::owns_what_it_captured() const {
  return std::all_of(runners_.begin(), runners_.end(),
                     [](const auto& entry) { return entry.second->owns_what_it_captured(); });
}

std::shared_ptr<AttentionState> ModelRunner::make_state() const {
  return std::make_shared<AttentionState>(site_.geometry, site_.memory);
}

}  // namespace plumb::device::decode
