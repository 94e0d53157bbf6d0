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

struct Counters {
  std::int64_t steps = 0, eager_steps = 0, captures = 0, graph_launches = 0;
  MetadataCounts metadata;  // of the cached metadata of 3.3
};

class Engine {
 public:
  // Throws std::invalid_argument for a mode that the model's metadata does not support.
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

  // Enqueues the next query tokens of these requests, all of which count as accepted.
  void step(const std::vector<std::uint64_t>& scheduled, const Padding& padding = {});
  // As step, but eagerly on a fresh state, at the padded size that it has or would have.
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
  std::unique_ptr<Model> make_model(std::uint64_t seed);
  void prepare(const std::vector<std::uint64_t>& scheduled, std::int64_t padded,
               const Padding& padding);
  void send_and_build();
  void forward(std::int64_t tokens, AttentionState& state);
  void advance(const std::vector<std::uint64_t>& scheduled);

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
