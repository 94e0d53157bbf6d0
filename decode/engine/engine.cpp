// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/engine.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "decode/models/mtp_model.h"
#include "decode/models/v32_model.h"
#include "decode/models/v4_model.h"

namespace plumb::device::decode {

namespace {

plumb_format dialect_of(const Properties& properties) {
  return properties.fp8 == Fp8Dialect::e4m3fnuz ? PLUMB_E4M3FNUZ : PLUMB_E4M3FN;
}

std::int64_t tokens_of(const std::vector<Query>& queries) {
  std::int64_t tokens = 0;
  for (const Query& query : queries) tokens += query.tokens;
  return tokens;
}

// Tells the observer of a capture while it lives.
class CaptureNotice {
 public:
  explicit CaptureNotice(const Caller& call) : call_(call) { call_.captures(true); }
  ~CaptureNotice() { call_.captures(false); }
  CaptureNotice(const CaptureNotice&) = delete;
  CaptureNotice& operator=(const CaptureNotice&) = delete;

 private:
  const Caller& call_;
};

constexpr const char* kMetadata = "metadata";
constexpr const char* kDraftMetadata = "draft metadata";

}  // namespace

Engine::Engine(Device& device, const device::Implementation& ops, Geometry geometry,
               std::optional<GraphMode> mode, Policies policies, std::uint64_t seed)
    : device_(device),
      geometry_(std::move(geometry)),
      drafter_geometry_(drafter_geometry(geometry_)),
      policies_(std::move(policies)),
      stream_(device_.create_stream()),
      transfers_(device_.create_stream()),
      sent_(device_.create_event()),
      call_(ops, builtin_implementation(device_.properties().platform), *policies_.missing_ops,
            stream_),
      temporaries_(device_, stream_, CachingAllocator::Reuse::at_once),
      memory_(device_),
      inputs_memory_(device_),
      requests_(geometry_, *policies_.requests, seed),
      inputs_(geometry_, inputs_memory_),
      staging_(device_, inputs_memory_, policies_.inputs->waits_for_copies()),
      model_(make_target(seed)) {
  const GraphMode chosen = policies_.mode->choose(mode, model_->traits().automatic_mode);
  target_ = std::make_unique<ModelRunner>(*model_, "layers", chosen, step_site(geometry_));
  if (geometry_.drafter) add_drafter(mode, seed + 1);
}

std::unique_ptr<Model> Engine::make_target(std::uint64_t seed) {
  if (geometry_.architecture == Architecture::v32) {
    return std::make_unique<V32Model>(geometry_, model_site(seed));
  }
  return std::make_unique<V4Model>(geometry_, model_site(seed));
}

void Engine::add_drafter(std::optional<GraphMode> mode, std::uint64_t seed) {
  draft_ = std::make_unique<MtpModel>(drafter_geometry_, model_->final_streams(), model_site(seed));
  const GraphMode chosen = policies_.mode->drafter(mode, draft_->traits().automatic_mode);
  if (chosen != GraphMode::none && chosen != target_->mode()) {
    throw std::invalid_argument(std::string(name_of(chosen)) +
                                " graphs of the drafter cannot run with " +
                                std::string(name_of(target_->mode())) + " graphs of its target");
  }
  drafter_ =
      std::make_unique<ModelRunner>(*draft_, "draft layers", chosen, step_site(drafter_geometry_));
}

ModelSite Engine::model_site(std::uint64_t seed) {
  return {.requests = requests_,
          .dialect = geometry_.fnuz ? PLUMB_E4M3FNUZ : dialect_of(device_.properties()),
          .policies = policies_,
          .device = device_,
          .stream = stream_,
          .memory = memory_,
          .temporaries = temporaries_,
          .seed = seed};
}

StepSite Engine::step_site(const Geometry& geometry) {
  return {device_, stream_, temporaries_, geometry, call_, inputs_, policies_};
}

Engine::~Engine() {
  try {
    device_.synchronize(stream_);
    device_.synchronize(transfers_);
  } catch (const std::exception&) {
    // The device, or the process that holds it, is lost. The call that waited for the step has
    // already thrown.
  }
  device_.destroy_event(sent_);
  device_.destroy_stream(transfers_);
  device_.destroy_stream(stream_);
}

void Engine::admit(std::uint64_t id, std::int64_t tokens) { admit(id, tokens, true); }

void Engine::admit_without_fill(std::uint64_t id, std::int64_t tokens) { admit(id, tokens, false); }

void Engine::admit(std::uint64_t id, std::int64_t tokens, bool fills) {
  if (tokens < 0 || tokens > geometry_.max_context) {
    throw std::invalid_argument("a request of " + std::to_string(tokens) + " tokens");
  }
  Request& request = requests_.admit(id);
  // In chunks of at most as many tokens as a step may have.
  while (request.computed < tokens) {
    const std::int64_t chunk = std::min(tokens - request.computed, geometry_.max_tokens());
    requests_.reserve(request, request.computed + chunk);
    plan_ = plan_step(geometry_, {{&request, chunk, true}}, chunk, {}, *policies_.inputs);
    send();
    if (fills) fill_caches(id, chunk, Filled::everything);
    request.count(chunk);
    requests_.leave(request);
  }
}

void Engine::fill_caches(std::uint64_t request, std::int64_t tokens, Filled filled) {
  call_.begin({.name = "earlier tokens", .tokens = tokens, .fills = true, .request = request});
  model_->fill_caches(call_, inputs_, tokens, filled);
  if (!draft_) return;
  if (filled == Filled::windows && !policies_.requests->fills_drafters_gap()) return;
  call_.begin({.name = "draft earlier tokens", .tokens = tokens, .fills = true});
  draft_->fill_caches(call_, inputs_, tokens, filled);
}

void Engine::admit_behind(std::uint64_t id, std::uint64_t other, std::int64_t tokens) {
  WindowGaps gaps = requests_.admit_behind(id, other, tokens);
  for (const Cache cache : kOfTokens) {
    if (!policies_.requests->fills_gap(cache)) gaps.of[static_cast<int>(cache)] = {};
  }
  fill_gaps(requests_.at(id), gaps);
}

// Fills the entries of the gaps only: the request shares all others with the other one.
void Engine::fill_gaps(const Request& request, const WindowGaps& gaps) {
  Request part = request;
  for (part.computed = gaps.begin(); part.computed < gaps.end();) {
    const std::int64_t chunk = std::min(gaps.end() - part.computed, geometry_.max_tokens());
    plan_ = plan_step(geometry_, {{&part, chunk, true}}, chunk, {}, *policies_.inputs);
    write_only(gaps, plan_);
    send();
    fill_caches(request.id, chunk, Filled::windows);
    part.computed += chunk;
  }
}

void Engine::finish(std::uint64_t request) { requests_.finish(request); }

void Engine::capture() {
  for (const ModelRunner::Dispatch& what : target_->captures()) capture(what);
}

void Engine::recapture(std::int64_t n) {
  const auto all = target_->captures();
  if (!all.empty()) capture(all.at(static_cast<std::size_t>(n % std::ssize(all))));
}

// Captures a step without requests, so that the capture writes no request's caches.
void Engine::capture(const ModelRunner::Dispatch& what) {
  const CaptureNotice notice(call_);
  prepare({}, what, {});
  target_->capture(what.kind, plan_);
  if (drafter_ && drafter_->mode() != GraphMode::none) drafter_->capture(what.kind, plan_);
}

void Engine::run_dummy(std::int64_t tokens) {
  const std::int64_t query_tokens = geometry_.query_tokens();
  const std::int64_t requests = std::max<std::int64_t>(tokens / query_tokens, 1);
  const ModelRunner::Dispatch how =
      target_->dispatch({.tokens = requests * query_tokens, .requests = requests, .uniform = true});
  prepare({}, how, {});
  run(how.kind);
}

void Engine::run(GraphKind kind) {
  target_->run(kind, plan_);
  if (!drafter_) return;
  drafter_->run(drafter_->mode() == GraphMode::none ? GraphKind::none : kind, plan_);
}

void Engine::step(const std::vector<Scheduled>& batch, const Padding& padding) {
  before_step_ = counters();
  plan_ = {};
  const std::vector<Query> queries = reserve(batch);
  const ModelRunner::Dispatch how = dispatch(queries);
  prepare(queries, how, padding);
  run(how.kind);
  ++steps_;
  advance(batch);
}

void Engine::step(const std::vector<std::uint64_t>& scheduled, const Padding& padding) {
  step(decoding(scheduled), padding);
}

void Engine::step_eagerly(const std::vector<Scheduled>& batch, const Padding& padding) {
  before_step_ = counters();
  plan_ = {};
  const std::vector<Query> queries = reserve(batch);
  const ModelRunner::Dispatch how = dispatch(queries);
  prepare(queries, how, padding);
  target_->run_eagerly(how.kind, plan_);
  if (drafter_) drafter_->run_eagerly(how.kind, plan_);
  ++steps_;
  advance(batch);
}

void Engine::step_eagerly(const std::vector<std::uint64_t>& scheduled, const Padding& padding) {
  step_eagerly(decoding(scheduled), padding);
}

std::vector<Scheduled> Engine::decoding(const std::vector<std::uint64_t>& scheduled) const {
  std::vector<Scheduled> batch;
  for (const std::uint64_t id : scheduled) batch.push_back({id, geometry_.query_tokens()});
  return batch;
}

std::vector<Query> Engine::reserve(const std::vector<Scheduled>& batch) {
  std::vector<Query> queries;
  for (const Scheduled& one : batch) {
    if (one.accepted != Scheduled::kAll &&
        (one.prefill || one.accepted < 1 || one.accepted > one.tokens)) {
      throw std::invalid_argument("request " + std::to_string(one.request) + " accepts " +
                                  std::to_string(one.accepted) + " tokens");
    }
    queries.push_back({&requests_.at(one.request), one.tokens, one.prefill});
  }
  refuse_misfits(queries);
  for (const Query& query : queries) {
    requests_.reserve(requests_.at(query.request->id), query.seq_len());
  }
  return queries;
}

void Engine::refuse_misfits(const std::vector<Query>& queries) const {
  for (const Query& query : queries) {
    if (query.seq_len() > geometry_.max_context) {
      throw std::invalid_argument("request " + std::to_string(query.request->id) +
                                  " gets too long");
    }
    if (query.prefill && geometry_.max_batched_tokens == 0) {
      throw std::invalid_argument("a prefill where max_batched_tokens is 0");
    }
  }
  const std::int64_t tokens = tokens_of(queries);
  if (tokens > geometry_.max_tokens() || std::ssize(queries) > geometry_.max_requests) {
    throw std::invalid_argument("a step of " + std::to_string(queries.size()) + " requests and " +
                                std::to_string(tokens) + " tokens");
  }
}

ModelRunner::Dispatch Engine::dispatch(const std::vector<Query>& queries) {
  const std::int64_t least = queries.empty() ? geometry_.query_tokens() : 0;
  const BatchDescriptor batch{.tokens = std::max(tokens_of(queries), least),
                              .requests = std::max<std::int64_t>(std::ssize(queries), 1),
                              .uniform = is_uniform(geometry_, queries)};
  oversized_steps_ += target_->outgrows_graphs(batch) ? 1 : 0;
  return target_->dispatch(batch);
}

void Engine::prepare(const std::vector<Query>& queries, const ModelRunner::Dispatch& dispatch,
                     const Padding& padding) {
  plan_ =
      plan_step(geometry_, queries, dispatch.tokens, padding, *policies_.inputs, dispatch.padded());
  if (!queries.empty()) policies_.requests->revise(geometry_, earlier_plan_, plan_);
  kind_ = dispatch.kind;
  send();
  if (plan_.attended == 0) return;  // no live token reads metadata
  build_metadata(kMetadata, *model_);
  if (draft_) build_metadata(kDraftMetadata, *draft_);
}

void Engine::send() {
  const Stream on = policies_.transfers->stream(stream_, transfers_);
  staging_.send(transfers(plan_, inputs_, *policies_.inputs, sends_++), on);
  if (on == stream_) return;
  device_.record(sent_, on);
  device_.wait(stream_, sent_);
}

void Engine::build_metadata(const char* part, Model& model) {
  const std::int64_t before = call_.calls();
  call_.begin({part, plan_.attended, !plan_.uniform});
  model.build_metadata(call_, inputs_, plan_);
  metadata_launches_ += call_.calls() - before;
}

std::vector<Transfer> Engine::planned_inputs() const {
  return transfers(plan_, inputs_, InputsPolicy());
}

std::vector<CacheView> Engine::caches() const {
  std::vector<CacheView> all = model_->caches();
  if (!draft_) return all;
  const std::vector<CacheView> more = draft_->caches();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void Engine::advance(const std::vector<Scheduled>& batch) {
  for (const Scheduled& one : batch) {
    Request& request = requests_.at(one.request);
    const std::int64_t accepted = policies_.requests->counted(
        one.tokens, one.accepted == Scheduled::kAll ? one.tokens : one.accepted);
    request.count(accepted);
    request.rejections += accepted < one.tokens ? 1 : 0;
    requests_.leave(request);
  }
  earlier_plan_ = plan_;
}

Counters Engine::counters() const {
  const PlanCounts plans = model_->plan_counts();
  Counters all{.steps = steps_,
               .oversized_steps = oversized_steps_,
               .metadata_launches = metadata_launches_,
               .plans_made = plans.made,
               .plans_kept = plans.kept,
               .host_synchronizations = device_.synchronizations(),
               .event_waits = device_.event_waits()};
  for (const ModelRunner* runner : {target_.get(), drafter_.get()}) {
    if (runner == nullptr) continue;
    const GraphCounters& more = runner->counters();
    all.eager_steps += more.eager_steps;
    all.captures += more.captures;
    all.recaptures += more.recaptures;
    all.graph_launches += more.graph_launches;
  }
  if (drafter_) {
    all.drafter_eager_steps = drafter_->counters().eager_steps;
    all.drafter_graph_launches = drafter_->counters().graph_launches;
  }
  return all;
}

StepSegments::Parts Engine::parts() const {
  StepSegments::Parts all;
  const bool any = plan_.attended > 0, varies = !plan_.uniform;
  if (any) all.push_back({kMetadata, plan_.attended, varies});
  if (const auto made = model_->made_plan(); any && made) all.push_back(*made);
  if (any && drafter_) all.push_back({kDraftMetadata, plan_.attended, varies});
  for (const ModelRunner* runner : {target_.get(), drafter_.get()}) {
    if (runner != nullptr) all.insert(all.end(), runner->parts().begin(), runner->parts().end());
  }
  return all;
}

}  // namespace plumb::device::decode
