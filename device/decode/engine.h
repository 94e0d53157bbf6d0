// SPDX-License-Identifier: Apache-2.0
//
// A decode step as a serving engine runs it: requests over paged caches, inputs in persistent
// buffers, metadata built before the step, the layers eager or replayed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/decode/graph_runner.h"
#include "device/decode/model.h"
#include "device/decode/policies.h"
#include "device/decode/staging.h"

namespace plumb::device::decode {

// What is captured   [10.1]. Others than these are refused.
enum class GraphMode { none, full };

// A request of a step and how many of its tokens come next: those that decode stand first.
struct Scheduled {
  std::uint64_t request = 0;
  std::int64_t tokens = 1;
  bool prefill = false;
};

struct Counters {
  std::int64_t steps = 0, eager_steps = 0, captures = 0, graph_launches = 0;
};

class Engine {
 public:
  Engine(Device& device, const plumb_implementation& ops, Geometry geometry, GraphMode mode,
         Policies policies = {}, std::uint64_t seed = 1);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A request whose first `tokens` tokens are in the caches already (a prefix hit). Throws
  // std::invalid_argument for one that is there or does not fit.
  void admit(std::uint64_t request, std::int64_t tokens);
  void finish(std::uint64_t request);
  // Captures every size, the largest first. Mode none: nothing.
  void capture();

  // Enqueues the next query tokens of these requests, all of which count as accepted. A batch that
  // is not uniform runs eagerly and unpadded. Throws std::invalid_argument for one that does not
  // fit.
  void step(const std::vector<Scheduled>& batch, const Padding& padding = {});
  // All of them decode what they may.
  void step(const std::vector<std::uint64_t>& scheduled, const Padding& padding = {});
  // As step, but eagerly on a fresh state, at the padded size that it has or would have. A batch
  // that is not uniform is padded with tokens of nobody, as a piecewise graph would have it.
  void step_eagerly(const std::vector<Scheduled>& batch, const Padding& padding = {});
  void step_eagerly(const std::vector<std::uint64_t>& scheduled, const Padding& padding = {});

  const Geometry& geometry() const { return geometry_; }
  const StepPlan& plan() const { return plan_; }  // of the latest step
  // What the host planned for the latest step, all of it, and where it should be.
  std::vector<Transfer> planned_inputs() const;
  const std::uint16_t* out() const { return model_->out(); }  // bf16 [tokens, hidden]
  std::vector<CacheView> caches() const { return model_->caches(); }
  const Counters& counters() const { return counters_; }
  const GraphRunner& graphs() const { return graphs_; }
  void observe(CallObserver* observer) { call_.observe(observer); }
  // All that steps read and write, but for the inputs that the host sends.
  const Memory& memory() const { return memory_; }
  // Memory that comes and goes: temporaries and attention states.
  const CachingAllocator& temporaries() const { return temporaries_; }
  // What a step of so many tokens enqueues on a fresh state, in order.
  std::vector<GraphNode> nodes_of_step(std::int64_t tokens);
  Stream stream() const { return stream_; }

 private:
  std::vector<Scheduled> decoding(const std::vector<std::uint64_t>& scheduled) const;
  // With blocks for its tokens.
  std::vector<Query> reserve(const std::vector<Scheduled>& batch);
  std::optional<std::int64_t> captured_size(const std::vector<Query>& queries) const;
  void run_eagerly(const std::vector<Query>& queries, std::int64_t padded, const Padding& padding);
  void prepare(const std::vector<Query>& queries, std::int64_t padded, const Padding& padding);
  void send_and_build();
  void forward(std::int64_t tokens, AttentionState& state);
  void begin(std::string_view part) const;
  void advance(const std::vector<Scheduled>& batch);

  Device& device_;
  Geometry geometry_;
  GraphMode mode_;
  Policies policies_;
  Stream stream_;
  Caller call_;
  CachingAllocator temporaries_;
  Memory memory_, inputs_memory_;
  Requests requests_;
  StepInputs inputs_;
  Staging staging_;
  std::unique_ptr<Model> model_;
  std::vector<Segment> segments_;
  GraphRunner graphs_;
  StepPlan plan_;
  std::unique_ptr<AttentionState> eager_state_;  // of the latest eager step
  Counters counters_;
};

}  // namespace plumb::device::decode
