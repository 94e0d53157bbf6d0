// SPDX-License-Identifier: Apache-2.0
//
// Runs decode steps as a serving engine does: requests over paged caches, inputs in persistent
// buffers, metadata built before each step, layers run eagerly or replayed from graphs.
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

// A request of a step and its number of tokens in this step. Requests that decode stand before
// prefills.
struct Scheduled {
  std::uint64_t request = 0;
  std::int64_t tokens = 1;
  bool prefill = false;
  std::int64_t accepted = kAll;  // leading tokens that count as accepted; at least 1 for a decode
  static constexpr std::int64_t kAll = -1;
};

class Engine {
 public:
  // Without `mode`: the mode that the model chooses. Throws std::invalid_argument for a mode that
  // the model does not support.
  Engine(Device& device, const device::Implementation& ops, Geometry geometry,
         std::optional<GraphMode> mode = std::nullopt, Policies policies = {},
         std::uint64_t seed = 1);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Adds a request and fills the caches with its first `tokens` tokens, as after a prefix hit.
  // Throws std::invalid_argument if the request exists already or does not fit.
  void admit(std::uint64_t request, std::int64_t tokens);
  // As admit, but writes no cache: the caller copies the entries.
  void admit_without_fill(std::uint64_t request, std::int64_t tokens);
  // Adds a request that shares the blocks of the first `tokens` tokens of `other`. Blocks of
  // windows that `other` has given back are allocated anew and filled. Throws
  // std::invalid_argument unless these tokens fill whole blocks.
  void admit_behind(std::uint64_t request, std::uint64_t other, std::int64_t tokens);
  // As admit_behind, but does not fill the new blocks: the caller copies their entries.
  WindowGaps admit_behind_without_fill(std::uint64_t request, std::uint64_t other,
                                       std::int64_t tokens) {
    return requests_.admit_behind(request, other, tokens);
  }
  void finish(std::uint64_t request);
  // Captures every size, the largest first. In mode none it does nothing. A size that is not
  // captured here is captured when a step first needs it.
  void capture();
  // Captures the n-th of these sizes again and replaces its graphs.
  void recapture(std::int64_t n);
  // Runs a step of padding rows only, as many as a batch of `tokens` tokens has. No request's
  // caches are written.
  void run_dummy(std::int64_t tokens);
  // Takes over the requests of another engine of the same geometry, with their block numbers. The
  // caller copies the contents of the caches.
  void adopt_requests(const Engine& other) { requests_.adopt(other.requests_); }

  // Enqueues the next query tokens of these requests. An empty batch runs the padding rows of one
  // request, as an idle rank does. Throws std::invalid_argument for a batch that does not fit or
  // that the model does not support.
  void step(const std::vector<Scheduled>& batch, const Padding& padding = {});
  // As above: each request decodes its full number of query tokens.
  void step(const std::vector<std::uint64_t>& scheduled, const Padding& padding = {});
  // As step, but eagerly and with a fresh attention state, at the padded size that step would use.
  void step_eagerly(const std::vector<Scheduled>& batch, const Padding& padding = {});
  void step_eagerly(const std::vector<std::uint64_t>& scheduled, const Padding& padding = {});

  const Geometry& geometry() const { return geometry_; }
  // Whether the kernel of `op` declares this value of a choice of its contract, such as
  // "plan=none".
  bool chooses(std::string_view op, std::string_view choice) const {
    return call_.chooses(op, choice);
  }
  // Throws std::out_of_range if no request has this id.
  const Request& request(std::uint64_t id) const { return requests_.at(id); }
  // Plan of the latest step, or of inputs prepared since. After a step that was refused before it
  // was planned, the plan has no tokens.
  const StepPlan& plan() const { return plan_; }
  // All arrays that the host planned for the latest step, with their device addresses.
  std::vector<Transfer> planned_inputs() const;
  const std::uint16_t* out() const { return model_->out(); }  // bf16 [tokens, hidden]
  // Caches of the target, then those of the drafter.
  std::vector<CacheView> caches() const;
  Counters counters() const;
  Counters latest() const { return counters() - before_step_; }  // counts of the latest step
  const ModelRunner& target() const { return *target_; }
  const ModelRunner* drafter() const { return drafter_.get(); }       // nullptr: no drafter
  const std::uint16_t* drafter_out() const { return draft_->out(); }  // bf16 [tokens, hidden]
  GraphKind kind() const { return kind_; }                            // of the latest step
  // Parts of the latest step, in the order in which the observer was told of them.
  StepSegments::Parts parts() const;
  void observe(CallObserver* observer) { call_.observe(observer); }
  void exchange(CallExchange* exchange) { call_.exchange(exchange); }
  // All memory that steps read and write, except the inputs that the host sends.
  const EngineMemory& memory() const { return memory_; }
  // Memory that is allocated and freed while steps run: temporaries and attention states.
  const CachingAllocator& temporaries() const { return temporaries_; }
  CachingAllocator& temporaries() { return temporaries_; }
  Stream stream() const { return stream_; }

 private:
  // fills = false: launches no kernel.
  void admit(std::uint64_t id, std::int64_t tokens, bool fills);
  void fill_caches(std::uint64_t request, std::int64_t tokens, Filled filled);
  void fill_gaps(const Request& request, const WindowGaps& gaps);
  // Plans and sends the inputs of a step and builds its metadata, before a model runs.
  void prepare(const std::vector<Query>& queries, const ModelRunner::Dispatch& dispatch,
               const Padding& padding);
  void send();
  std::vector<Scheduled> decoding(const std::vector<std::uint64_t>& scheduled) const;
  // Allocates cache blocks for the new tokens of each request.
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
  StepPlan plan_, earlier_plan_;  // prepared now or last; the plan of the step before
  GraphKind kind_ = GraphKind::none;
  std::int64_t steps_ = 0, sends_ = 0, oversized_steps_ = 0, metadata_launches_ = 0;
  Counters before_step_;
};

}  // namespace plumb::device::decode
