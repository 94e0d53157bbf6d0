// SPDX-License-Identifier: Apache-2.0
#include "device/decode/engine.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/decode/v32_model.h"
#include "device/decode/v4_model.h"

namespace plumb::device::decode {

namespace {

plumb_format dialect_of(const Properties& properties) {
  return properties.fp8 == Fp8Dialect::e4m3fnuz ? PLUMB_E4M3FNUZ : PLUMB_E4M3FN;
}

Geometry supported(Geometry geometry, GraphMode mode) {
  const GraphSupport support =
      geometry.architecture == Architecture::v32 ? V32Model::kGraphSupport : V4Model::kGraphSupport;
  if (mode == GraphMode::full && geometry.speculated > 0 &&
      support == GraphSupport::uniform_single_token_decode) {
    throw std::invalid_argument(
        "V3.2 in full graphs: its metadata supports one query token per request only "
        "(UNIFORM_SINGLE_TOKEN_DECODE), and with speculation there are " +
        std::to_string(geometry.query_tokens()));
  }
  return geometry;
}

}  // namespace

Engine::Engine(Device& device, const plumb_implementation& ops, Geometry geometry, GraphMode mode,
               Policies policies, std::uint64_t seed)
    : device_(device),
      geometry_(supported(std::move(geometry), mode)),
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
      model_(make_model(seed)),
      segments_(model_->segments()),
      graphs_(
          device, stream_, geometry_,
          [this](std::int64_t tokens, AttentionState& state) { forward(tokens, state); },
          [this] { return std::make_shared<AttentionState>(geometry_, temporaries_); },
          *policies_.capture) {}

std::unique_ptr<Model> Engine::make_model(std::uint64_t seed) {
  const plumb_format dialect = dialect_of(device_.properties());
  if (geometry_.architecture == Architecture::v32) {
    return std::make_unique<V32Model>(geometry_, requests_, dialect, device_, stream_, memory_,
                                      policies_.v32, seed);
  }
  return std::make_unique<V4Model>(geometry_, requests_, dialect, device_, policies_, stream_,
                                   memory_, temporaries_, seed);
}

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
    Geometry chunk = geometry_;
    chunk.speculated = std::min(tokens - request.computed, geometry_.max_tokens()) - 1;
    plan_ = plan_step(chunk, {&request}, chunk.query_tokens(), {}, *policies_.inputs);
    staging_.send(transfers(plan_, inputs_, *policies_.inputs), stream_);
    call_.begin("earlier tokens", plan_.tokens);
    model_->fill_caches(call_, inputs_, plan_.tokens);
    request.computed += chunk.query_tokens();
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

void Engine::step(const std::vector<std::uint64_t>& scheduled, const Padding& padding) {
  const std::int64_t tokens =
      static_cast<std::int64_t>(scheduled.size()) * geometry_.query_tokens();
  const auto size = graphs_.size_for(tokens);
  if (mode_ == GraphMode::none || !size) {
    prepare(scheduled, tokens, padding);
    eager_state_ = std::make_unique<AttentionState>(geometry_, temporaries_);
    forward(tokens, *eager_state_);
    ++counters_.eager_steps;
  } else {
    prepare(scheduled, *size, padding);
    graphs_.replay(*size);
    ++counters_.graph_launches;
  }
  advance(scheduled);
}

void Engine::step_eagerly(const std::vector<std::uint64_t>& scheduled, const Padding& padding) {
  const std::int64_t tokens =
      static_cast<std::int64_t>(scheduled.size()) * geometry_.query_tokens();
  const std::int64_t padded = graphs_.size_for(tokens).value_or(tokens);
  prepare(scheduled, padded, padding);
  eager_state_ = std::make_unique<AttentionState>(geometry_, temporaries_);
  forward(padded, *eager_state_);
  ++counters_.eager_steps;
  advance(scheduled);
}

void Engine::prepare(const std::vector<std::uint64_t>& scheduled, std::int64_t padded,
                     const Padding& padding) {
  std::vector<const Request*> live;
  for (const std::uint64_t id : scheduled) {
    Request& request = requests_.at(id);
    requests_.reserve(request, request.computed + geometry_.query_tokens());
    live.push_back(&request);
  }
  plan_ = plan_step(geometry_, live, padded, padding, *policies_.inputs);
  send_and_build();
  ++counters_.steps;
}

void Engine::send_and_build() {
  staging_.send(transfers(plan_, inputs_, *policies_.inputs), stream_);
  call_.begin("metadata", plan_.tokens);
  model_->build_metadata(call_, inputs_, plan_);
  counters_.metadata = model_->metadata_counts();
}

void Engine::forward(std::int64_t tokens, AttentionState& state) {
  call_.begin("layers", tokens);
  const StepContext context{call_, inputs_, state, tokens};
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

void Engine::advance(const std::vector<std::uint64_t>& scheduled) {
  for (const std::uint64_t id : scheduled) requests_.at(id).computed += geometry_.query_tokens();
}

}  // namespace plumb::device::decode
