// SPDX-License-Identifier: Apache-2.0
//
// A decode step as a serving engine runs it: requests over paged caches, inputs in persistent
// buffers, metadata built before the step, the layers eager or replayed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/engine/counters.h"
#include "decode/engine/counting_device.h"
#include "decode/engine/model.h"
#include "decode/engine/model_runner.h"
#include "decode/engine/model_site.h"
#include "decode/engine/staging.h"
#include "decode/policies/policies.h"

namespace plumb::device::decode {

// A request of a step and how many of its tokens come next: those that decode stand first.
struct Scheduled {
  std::uint64_t request = 0;
  std::int64_t tokens = 1;
  bool prefill = false;
  std::int64_t accepted = kAll;  // the first so many count: at least one, where it decodes
  static constexpr std::int64_t kAll = -1;
};

class Engine {
 public:
  // Without a mode: the one that suits the model. Throws std::invalid_argument for one that the
  // model cannot have.
  Engine(Device& device, const device::Implementation& ops, Geometry geometry,
         std::optional<GraphMode> mode = std::nullopt, Policies policies = {},
         std::uint64_t seed = 1);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A request whose first `tokens` tokens are in the caches already (a prefix hit). Throws
  // std::invalid_argument for one that is there or does not fit.
  void admit(std::uint64_t request, std::int64_t tokens);
  // As admit, but for what the caches hold: that is the caller's to copy.
  void admit_without_fill(std::uint64_t request, std::int64_t tokens);
  // A request that shares the blocks of another's first `tokens` tokens; those of the window that
  // the other has given back are filled again, in blocks of its own. Throws std::invalid_argument
  // unless these tokens are whole blocks.
  void admit_behind(std::uint64_t request, std::uint64_t other, std::int64_t tokens);
  // As admit_behind, but for these blocks: what they hold is the caller's to copy.
  WindowGap admit_behind_without_fill(std::uint64_t request, std::uint64_t other,
                                      std::int64_t tokens) {
    return requests_.admit_behind(request, other, tokens);
  }
  void finish(std::uint64_t request);
  // Captures every size, the largest first. Mode none: nothing. What is not captured here is when a
  // step first needs it.
  void capture();
  // The n-th of these once more, in place of the graphs that are there.
  void recapture(std::int64_t n);
  // Padding alone, of as many tokens as such a batch has: nobody's caches are written.
  void run_dummy(std::int64_t tokens);
  // The requests of another engine of this geometry, with their blocks; what the caches hold is the
  // caller's to copy.
  void adopt_requests(const Engine& other) { requests_.adopt(other.requests_); }

  // Enqueues the next query tokens of these requests. Nobody: as many rows of padding as one
  // request has, which is what an idle rank runs. Throws std::invalid_argument for a batch that
  // does not fit, or that the model cannot have.
  void step(const std::vector<Scheduled>& batch, const Padding& padding = {});
  // All of them decode what they may.
  void step(const std::vector<std::uint64_t>& scheduled, const Padding& padding = {});
  // As step, but eagerly on a fresh state, at the padded size that it has or would have.
  void step_eagerly(const std::vector<Scheduled>& batch, const Padding& padding = {});
  void step_eagerly(const std::vector<std::uint64_t>& scheduled, const Padding& padding = {});

  const Geometry& geometry() const { return geometry_; }
  // Whether the kernel of `op` declares this value of a contract, "plan=none".
  bool chooses(std::string_view op, std::string_view choice) const {
    return call_.chooses(op, choice);
  }
  // Throws std::out_of_range if there is none of the id.
  const Request& request(std::uint64_t id) const { return requests_.at(id); }
  // Of the latest step, or of what was prepared since. A step that was not planned, because it was
  // refused, has one without tokens.
  const StepPlan& plan() const { return plan_; }
  // What the host planned for the latest step, all of it, and where it should be.
  std::vector<Transfer> planned_inputs() const;
  const std::uint16_t* out() const { return model_->out(); }  // bf16 [tokens, hidden]
  // Of the target, then of the drafter.
  std::vector<CacheView> caches() const;
  Counters counters() const;
  Counters latest() const { return counters() - before_step_; }  // of the latest step
  const ModelRunner& target() const { return *target_; }
  const ModelRunner* drafter() const { return drafter_.get(); }       // nullptr: none
  const std::uint16_t* drafter_out() const { return draft_->out(); }  // bf16 [tokens, hidden]
  GraphKind kind() const { return kind_; }                            // how the latest step was run
  // Parts of the latest step in their order, as an observer was told of them.
  StepSegments::Parts parts() const;
  void observe(CallObserver* observer) { call_.observe(observer); }
  void exchange(CallExchange* exchange) { call_.exchange(exchange); }
  // All that steps read and write, but for the inputs that the host sends.
  const EngineMemory& memory() const { return memory_; }
  // Memory that comes and goes: temporaries and attention states.
  const CachingAllocator& temporaries() const { return temporaries_; }
  CachingAllocator& temporaries() { return temporaries_; }
  Stream stream() const { return stream_; }

 private:
  // Without `fills`, no kernel runs.
  void admit(std::uint64_t id, std::int64_t tokens, bool fills);
  void fill_caches(std::uint64_t request, std::int64_t tokens);
  void fill_gap(const Request& request, const WindowGap& gap);
  // Inputs and metadata of a step, before any model runs.
  void prepare(const std::vector<Query>& queries, const ModelRunner::Dispatch& dispatch,
               const Padding& padding);
  void send();
  std::vector<Scheduled> decoding(const std::vector<std::uint64_t>& scheduled) const;
  // With blocks for its tokens.
  std::vector<Query> reserve(const std::vector<Scheduled>& batch);
  void refuse_misfits(const std::vector<Query>& queries) const;
  ModelRunner::Dispatch dispatch(const std::vector<Query>& queries);
  void advance(const std::vector<Scheduled>& batch);
  void capture(const ModelRunner::Dispatch& what);
  void run(GraphKind kind);
  std::unique_ptr<Model> make_target(std::uint64_t seed);
  ModelSite model_site(std::uint64_t seed);
  StepSite step_site(const Geometry& geometry);
  void build_metadata(const char* part, Model& model);
  void add_drafter(std::optional<GraphMode> mode, std::uint64_t seed);

  CountingDevice device_;
  Geometry geometry_, drafter_geometry_;
  Policies policies_;
  Stream stream_, transfers_;
  Event sent_;
  Caller call_;
  CachingAllocator temporaries_;
  EngineMemory memory_, inputs_memory_;
  Requests requests_;
  StepInputs inputs_;
  Staging staging_;
  std::unique_ptr<Model> model_, draft_;
  std::unique_ptr<ModelRunner> target_, drafter_;
  StepPlan plan_, earlier_plan_;  // what is prepared, or was last; of the step before
  GraphKind kind_ = GraphKind::none;
  std::int64_t steps_ = 0, sends_ = 0, oversized_steps_ = 0, metadata_launches_ = 0;
  Counters before_step_;
};

}  // namespace plumb::device::decode
