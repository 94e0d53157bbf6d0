// SPDX-License-Identifier: Apache-2.0
//
// Runs a model with its graphs: pads a batch to a captured size, replays a graph or runs eagerly,
// and counts both   [10.2]. Target and drafter have a runner each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decode/graphs/graph_runner.h"

namespace plumb::device::decode {

struct GraphCounters {
  std::int64_t eager_steps = 0, captures = 0, graph_launches = 0;
  std::int64_t recaptures = 0;  // captures of a padded batch that was captured before
};

class ModelRunner {
 public:
  // Throws std::invalid_argument for a mode that the model does not support.
  ModelRunner(Model& model, const std::string& part, GraphMode mode, const StepSite& site);

  // How a batch is run and its padded number of tokens: the smallest captured size that holds the
  // batch, or the batch's own size if no graph is used.
  struct Dispatch {
    GraphKind kind = GraphKind::none;
    std::int64_t tokens = 0;
    Padded padded() const {
      const bool whole = kind == GraphKind::none || kind == GraphKind::full;
      return whole ? Padded::tokens_and_requests : Padded::tokens;
    }
  };
  Dispatch dispatch(const BatchDescriptor& batch) const;
  // Whether the batch runs without a graph only because it is larger than every captured size.
  bool outgrows_graphs(const BatchDescriptor& batch) const;
  // Every kind and size that dispatch can return, in the order of capture: piecewise graphs before
  // full graphs, the largest size first   [10.3].
  std::vector<Dispatch> captures() const;

  // Runs a step whose inputs and metadata are in their buffers. A missing graph is captured first.
  void run(GraphKind kind, const StepPlan& plan);
  // The same shapes as run, without graphs and with a fresh attention state.
  void run_eagerly(GraphKind kind, const StepPlan& plan);
  void capture(GraphKind kind, const StepPlan& plan);

  GraphMode mode() const { return mode_; }
  const ModelTraits& traits() const { return traits_; }
  const GraphCounters& counters() const { return counters_; }
  const GraphRunner& graphs(GraphKind kind) const { return *runners_.at(kind); }
  BatchDescriptor key(GraphKind kind, const StepPlan& plan) const;
  // Nodes that an eager run of this plan enqueues, with a fresh state: all of them, or only those
  // that graphs of this kind capture (`captured`).
  enum class Which { all, captured };
  std::vector<GraphNode> eager_nodes(GraphKind kind, const StepPlan& plan, Which which) const;
  // Parts of the latest step, as the observer was told of them.
  const StepSegments::Parts& parts() const { return parts_; }
  // Whether all memory whose addresses graphs captured is still allocated to its owner.
  bool owns_what_it_captured() const;

 private:
  bool has_size(GraphKind kind, std::int64_t tokens) const;
  std::shared_ptr<AttentionState> make_state() const;

  StepSite site_;
  ModelTraits traits_;
  GraphMode mode_;
  StepSegments segments_;
  std::map<GraphKind, std::unique_ptr<GraphRunner>> runners_;
  std::set<BatchDescriptor> captured_;     // padded batches captured, under any key
  std::shared_ptr<AttentionState> state_;  // attention state of the latest eager step
  StepSegments::Parts parts_;
  GraphCounters counters_;
};

}  // namespace plumb::device::decode
