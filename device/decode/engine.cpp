// SPDX-License-Identifier: Apache-2.0
#include "device/decode/engine.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/decode/v4_model.h"

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

}  // namespace

Engine::Engine(Device& device, const plumb_implementation& ops, Geometry geometry, GraphMode mode,
               Policies policies, std::uint64_t seed)
    : device_(device),
      geometry_(std::move(geometry)),
      mode_(mode),
      policies_(std::move(policies)),
      stream_(device.create_stream()),
      call_(ops, builtin_implementation(device.properties().platform), stream_),
      temporaries_(device, stream_, CachingAllocator::Reuse::at_once),
      memory_(device),
      inputs_memory_(device),
      requests_(geometry_, seed),
      inputs_(geometry_, inputs_memory_),
      staging_(device, inputs_memory_, policies_.inputs->waits_for_copies()),
      model_(std::make_unique<V4Model>(geometry_, requests_, dialect_of(device.properties()),
                                       device, policies_, stream_, memory_, temporaries_, seed)),
      segments_(model_->segments()),
      graphs_(
          device, stream_, geometry_,
          [this](std::int64_t tokens, AttentionState& state) { forward(tokens, state); },
          [this] { return std::make_shared<AttentionState>(geometry_, temporaries_); },
          *policies_.capture) {}

Engine::~Engine() {
  try {
    device_.synchronize(stream_);
  } catch (const DeviceError&) {
    // The device is lost. Who waited for the step has been told.
  }
  device_.destroy_stream(stream_);
}

void Engine::admit(std::uint64_t id, std::int64_t tokens) {
  if (tokens < 0 || tokens > geometry_.max_context) {
    throw std::invalid_argument("a request of " + std::to_string(tokens) + " tokens");
  }
  Request& request = requests_.admit(id);
  requests_.reserve(request, tokens);
  // As many at a time as a step has tokens.
  while (request.computed < tokens) {
    const std::int64_t chunk = std::min(tokens - request.computed, geometry_.max_tokens());
    plan_ = plan_step(geometry_, {{&request, chunk, true}}, chunk, {}, *policies_.inputs);
    staging_.send(transfers(plan_, inputs_, *policies_.inputs), stream_);
    call_.begin("earlier tokens", plan_.tokens);
    model_->fill_caches(call_, inputs_, plan_.tokens);
    request.computed += chunk;
  }
}

void Engine::finish(std::uint64_t request) { requests_.finish(request); }

void Engine::capture() {
  if (mode_ == GraphMode::none) return;
  auto sizes = geometry_.capture_sizes;
  std::reverse(sizes.begin(), sizes.end());
  for (const std::int64_t tokens : sizes) {
    plan_ = plan_step(geometry_, {}, tokens, {}, *policies_.inputs);
    send_and_build();
    graphs_.capture(tokens);
    ++counters_.captures;
  }
}

void Engine::step(const std::vector<Scheduled>& batch, const Padding& padding) {
  const std::vector<Query> queries = reserve(batch);
  const auto size = captured_size(queries);
  if (mode_ == GraphMode::none || !size) {
    run_eagerly(queries, tokens_of(queries), padding);
  } else {
    prepare(queries, *size, padding);
    graphs_.replay(*size);
    ++counters_.graph_launches;
  }
  advance(batch);
}

void Engine::step(const std::vector<std::uint64_t>& scheduled, const Padding& padding) {
  step(decoding(scheduled), padding);
}

void Engine::step_eagerly(const std::vector<Scheduled>& batch, const Padding& padding) {
  const std::vector<Query> queries = reserve(batch);
  const std::int64_t tokens = tokens_of(queries);
  run_eagerly(queries, graphs_.size_for(tokens).value_or(tokens), padding);
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
  for (const Scheduled& scheduled : batch) {
    const Request& request = requests_.at(scheduled.request);
    queries.push_back({&request, scheduled.tokens, scheduled.prefill});
    if (queries.back().seq_len() > geometry_.max_context) {
      throw std::invalid_argument("request " + std::to_string(request.id) + " gets too long");
    }
    if (scheduled.prefill && geometry_.max_batched_tokens == 0) {
      throw std::invalid_argument("a prefill where max_batched_tokens is 0");
    }
  }
  if (tokens_of(queries) > geometry_.max_tokens() || std::ssize(batch) > geometry_.max_requests) {
    throw std::invalid_argument("a step of " + std::to_string(batch.size()) + " requests and " +
                                std::to_string(tokens_of(queries)) + " tokens");
  }
  for (const Query& query : queries) {
    requests_.reserve(requests_.at(query.request->id), query.seq_len());
  }
  return queries;
}

std::optional<std::int64_t> Engine::captured_size(const std::vector<Query>& queries) const {
  if (!is_uniform(geometry_, queries)) return std::nullopt;
  return graphs_.size_for(tokens_of(queries));
}

void Engine::run_eagerly(const std::vector<Query>& queries, std::int64_t padded,
                         const Padding& padding) {
  prepare(queries, padded, padding);
  eager_state_ = std::make_unique<AttentionState>(geometry_, temporaries_);
  forward(padded, *eager_state_);
  ++counters_.eager_steps;
}

void Engine::prepare(const std::vector<Query>& queries, std::int64_t padded,
                     const Padding& padding) {
  plan_ = plan_step(geometry_, queries, padded, padding, *policies_.inputs);
  send_and_build();
  ++counters_.steps;
}

void Engine::send_and_build() {
  staging_.send(transfers(plan_, inputs_, *policies_.inputs), stream_);
  begin("metadata");
  model_->build_metadata(call_, inputs_, plan_);
}

void Engine::forward(std::int64_t tokens, AttentionState& state) {
  begin("layers");
  const StepContext context{call_, inputs_, state, tokens, plan_};
  for (const Segment& segment : segments_) segment.run(context);
}

std::vector<Transfer> Engine::planned_inputs() const {
  return transfers(plan_, inputs_, InputsPolicy());
}

std::vector<GraphNode> Engine::nodes_of_step(std::int64_t tokens) {
  AttentionState state(geometry_, temporaries_);
  device_.begin_capture(stream_);
  forward(tokens, state);
  const Graph graph = device_.end_capture(stream_);
  const std::vector<GraphNode> nodes = device_.nodes(graph);
  device_.destroy_graph(graph);
  return nodes;
}

void Engine::begin(std::string_view part) const {
  if (plan_.uniform) return call_.begin(part, plan_.tokens);
  call_.begin_varying(part);
}

void Engine::advance(const std::vector<Scheduled>& batch) {
  for (const Scheduled& scheduled : batch) {
    requests_.at(scheduled.request).computed += scheduled.tokens;
  }
}

}  // namespace plumb::device::decode
