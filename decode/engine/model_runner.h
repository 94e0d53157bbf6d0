// SPDX-License-Identifier: Apache-2.0
//
// A model with its graphs: pads a batch to a captured size, replays or runs eagerly, and counts
// what it did   [10.2]. Target and drafter have one each.
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
  std::int64_t recaptures = 0;  // of a padded batch that had been captured already
};

class ModelRunner {
 public:
  // Throws std::invalid_argument for a mode that the model cannot have.
  ModelRunner(Model& model, const std::string& part, GraphMode mode, const StepSite& site);

  // How a batch is run, and to how many tokens it is padded: to the smallest captured size that is
  // enough, or not at all.
  struct Dispatch {
    GraphKind kind = GraphKind::none;
    std::int64_t tokens = 0;
    Padded padded() const {
      const bool whole = kind == GraphKind::none || kind == GraphKind::full;
      return whole ? Padded::tokens_and_requests : Padded::tokens;
    }
  };
  Dispatch dispatch(const BatchDescriptor& batch) const;
  // Would the batch be in a graph, were it not larger than every captured size?
  bool outgrows_graphs(const BatchDescriptor& batch) const;
  // Every kind and size that dispatch can name, in the order of capture: pieces before whole steps,
  // the largest first   [10.3].
  std::vector<Dispatch> captures() const;

  // The plan's inputs and metadata stand in their buffers. A graph that is missing is captured.
  void run(GraphKind kind, const StepPlan& plan);
  // The same shapes without graphs, on a fresh attention state.
  void run_eagerly(GraphKind kind, const StepPlan& plan);
  void capture(GraphKind kind, const StepPlan& plan);

  GraphMode mode() const { return mode_; }
  const ModelTraits& traits() const { return traits_; }
  const GraphCounters& counters() const { return counters_; }
  const GraphRunner& graphs(GraphKind kind) const { return *runners_.at(kind); }
  BatchDescriptor key(GraphKind kind, const StepPlan& plan) const;
  // What is enqueued eagerly for this plan, on a fresh state: all of it, or but what breaks.
  enum class Which { all, captured };
  std::vector<GraphNode> eager_nodes(GraphKind kind, const StepPlan& plan, Which which) const;
  // Parts of the latest step, as an observer was told of them.
  const StepSegments::Parts& parts() const { return parts_; }
  // Whether everything that graphs captured the addresses of is still theirs.
  bool owns_what_it_captured() const;

 private:
  bool has_size(GraphKind kind, std::int64_t tokens) const;
  std::shared_ptr<AttentionState> make_state() const;

  StepSite site_;
  ModelTraits traits_;
  GraphMode mode_;
  StepSegments segments_;
  std::map<GraphKind, std::unique_ptr<GraphRunner>> runners_;
  std::set<BatchDescriptor> captured_;     // as padded, whatever they are kept under
  std::shared_ptr<AttentionState> state_;  // of the latest eager step
  StepSegments::Parts parts_;
  GraphCounters counters_;
};

}  // namespace plumb::device::decode
