// SPDX-License-Identifier: Apache-2.0
#include "device/sim/sim_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace plumb::device::sim {

namespace {

[[noreturn]] void fail(Fault fault, const std::string& what) { throw DeviceError(fault, what); }

std::string name_of(const StreamState& stream) { return "stream " + std::to_string(stream.number); }

void require_launchable(const KernelCall& call, const Properties& properties) {
  const LaunchShape& shape = call.shape;
  const bool grid = shape.grid_x >= 1 && shape.grid_x <= properties.max_grid_x &&
                    shape.grid_y >= 1 && shape.grid_y <= properties.max_grid_y;
  const bool block = shape.block >= 1 && shape.block <= properties.max_threads_per_block;
  if (grid && block && shape.dynamic_shared_bytes <= properties.shared_bytes_per_block) return;
  fail(Fault::launch_limits, "kernel '" + call.name + "': " + std::to_string(shape.grid_x) + " x " +
                                 std::to_string(shape.grid_y) + " blocks of " +
                                 std::to_string(shape.block) + " threads and " +
                                 std::to_string(shape.dynamic_shared_bytes) +
                                 " bytes of dynamic shared memory on " + properties.platform);
}

}  // namespace

SimDevice::SimDevice(const Properties& properties, const Conditions& conditions)
    : properties_(properties),
      conditions_(conditions),
      memory_({.poison = kFreshPoison, .page_guards = conditions.page_guards}),
      pinned_({.poison = kPinnedPoison, .page_guards = conditions.page_guards}),
      executor_(properties_, conditions_, memory_, pinned_) {}

SimDevice::~SimDevice() = default;

SimDevice::Lock SimDevice::enter(const char* call) {
  Lock lock(mutex_);
  if (executor_.busy()) {
    fail(Fault::invalid_argument,
         std::string(call) + ": called by a host function or kernel; those may not use the device");
  }
  return lock;
}

SimDevice::Lock SimDevice::enter_alive(const char* call) {
  Lock lock = enter(call);
  if (lost_) {
    fail(lost_->fault(), std::string(call) + ": the device is lost since: " + lost_->what());
  }
  return lock;
}

StreamState& SimDevice::stream_of(const char* call, Stream stream) {
  for (const auto& known : streams_) {
    if (known.get() == stream && !known->destroyed) return *known;
  }
  fail(Fault::invalid_argument, std::string(call) + ": not a stream of this device");
}

EventState& SimDevice::event_of(const char* call, Event event) {
  for (const auto& known : events_) {
    if (known.get() == event && !known->destroyed) return *known;
  }
  fail(Fault::invalid_argument, std::string(call) + ": not an event of this device");
}

SimDevice::GraphState& SimDevice::graph_of(const char* call, GraphTable& table, void* graph) {
  const auto found = table.find(graph);
  if (found != table.end()) return *found->second;
  fail(Fault::capture_invalid, std::string(call) + ": no such graph, or it has been destroyed");
}

// ---- memory

void* SimDevice::allocate(std::size_t bytes, std::string_view label) {
  const Lock lock = enter_alive("allocate");
  refuse_in_capture("allocate");
  return memory_.allocate(bytes, label);
}

void* SimDevice::allocate_sparse(std::size_t bytes, std::string_view label) {
  const Lock lock = enter_alive("allocate_sparse");
  refuse_in_capture("allocate_sparse");
  return memory_.allocate_sparse(bytes, label);
}

void SimDevice::free(void* memory) {
  const Lock lock = enter("free");
  refuse_in_capture("free");
  memory_.free(memory);
}

void* SimDevice::allocate_pinned(std::size_t bytes) {
  const Lock lock = enter_alive("allocate_pinned");
  refuse_in_capture("allocate_pinned");
  return pinned_.allocate(bytes, "pinned memory");
}

void SimDevice::free_pinned(void* memory) {
  const Lock lock = enter("free_pinned");
  refuse_in_capture("free_pinned");
  pinned_.free(memory);
}

std::vector<GuardDamage> SimDevice::check_guards() {
  const Lock lock = enter("check_guards");
  std::vector<GuardDamage> damage = memory_.check_guards();
  std::vector<GuardDamage> pinned = pinned_.check_guards();
  damage.insert(damage.end(), pinned.begin(), pinned.end());
  return damage;
}

bool SimDevice::pageable(const void* address) const {
  return !memory_.owns(address) && !pinned_.owns(address);
}

// ---- streams and events

Stream SimDevice::create_stream() {
  const Lock lock = enter_alive("create_stream");
  auto stream = std::make_unique<StreamState>();
  stream->device = this;
  stream->number = static_cast<int>(streams_.size()) + 1;
  return streams_.emplace_back(std::move(stream)).get();
}

void SimDevice::destroy_stream(Stream stream) {
  const Lock lock = enter("destroy_stream");
  StreamState& state = stream_of("destroy_stream", stream);
  if (state.capture) refuse(*state.capture, "destroy_stream during its capture");
  state.destroyed = true;
}

Event SimDevice::create_event() {
  const Lock lock = enter_alive("create_event");
  auto event = std::make_unique<EventState>();
  event->number = static_cast<int>(events_.size()) + 1;
  return events_.emplace_back(std::move(event)).get();
}

void SimDevice::destroy_event(Event event) {
  const Lock lock = enter("destroy_event");
  event_of("destroy_event", event).destroyed = true;
}

void SimDevice::record(Event event, Stream stream) {
  const Lock lock = enter_alive("record");
  EventState& target = event_of("record", event);
  StreamState& source = stream_of("record", stream);
  if (source.capture) return record_captured(target, source);
  target.capture.reset();
  target.point = source.tail();
}

void SimDevice::wait(Stream stream, Event event) {
  const Lock lock = enter_alive("wait");
  StreamState& state = stream_of("wait", stream);
  const EventState& source = event_of("wait", event);
  if (source.capture) return wait_captured(state, source);
  if (source.point.stream == nullptr) return;
  if (state.capture) {
    refuse(*state.capture, "wait of " + name_of(state) +
                               " for an event recorded outside its capture; the graph cannot");
  }
  if (source.point.stream != &state && !reached(source.point)) submit(state, Wait{source.point});
}

void SimDevice::synchronize_event(Event event) {
  const Lock lock = enter_alive("synchronize_event");
  const EventState& state = event_of("synchronize_event", event);
  if (state.capture && !state.capture->ended) {
    refuse(*state.capture, "synchronize_event during the capture that recorded the event");
  }
  if (state.capture) {
    fail(Fault::capture_invalid, "synchronize_event: the event was recorded in a capture");
  }
  drain(state.point);
}

void SimDevice::synchronize(Stream stream) {
  const Lock lock = enter_alive("synchronize(stream)");
  StreamState& state = stream_of("synchronize(stream)", stream);
  if (state.capture) {
    refuse(*state.capture, "synchronize(stream) during capture of " + name_of(state));
  }
  drain(state.tail());
}

void SimDevice::synchronize() {
  const Lock lock = enter_alive("synchronize()");
  for (const auto& capture : captures_) {
    refuse(*capture, "synchronize() of the device during capture of " + name_of(*capture->origin));
  }
  std::vector<StreamState*> newest_first;
  for (const auto& stream : streams_) newest_first.push_back(stream.get());
  std::sort(newest_first.begin(), newest_first.end(),
            [](const auto* a, const auto* b) { return a->last_ticket > b->last_ticket; });
  for (StreamState* stream : newest_first) drain(stream->tail());
}

void SimDevice::submit(StreamState& stream, Operation operation) {
  if (stream.capture) return append(stream, std::move(operation));
  stream.pending.push_back(std::move(operation));
  stream.last_ticket = ++tickets_;
  if (conditions_.policy == Policy::early) drain(stream.tail());
}

void SimDevice::drain(const Point& point) {
  try {
    run_until(point, executor_);
  } catch (const DeviceError& error) {
    lost_ = error;
    throw;
  } catch (const std::exception& error) {
    lost_ = DeviceError(Fault::other, std::string("an operation threw: ") + error.what());
    throw *lost_;
  }
}

// ---- operations

void SimDevice::launch(StreamState& stream, KernelCall call) {
  const Lock lock = enter_alive("launch");
  stream_of("launch", &stream);
  require_launchable(call, properties_);
  submit(stream, std::move(call));
}

void SimDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  const Lock lock = enter_alive("copy");
  StreamState& state = stream_of("copy", stream);
  Copy copy{to, from, bytes, nullptr};
  executor_.check(copy);
  if (state.capture) {
    refuse_copy_to_pageable(state, to);
  } else if (pageable(from)) {
    const auto* source = static_cast<const std::byte*>(from);
    copy.snapshot = std::make_shared<const std::vector<std::byte>>(source, source + bytes);
  }
  submit(state, std::move(copy));
  if (pageable(to)) drain(state.tail());
}

void SimDevice::refuse_copy_to_pageable(const StreamState& stream, const void* to) const {
  if (!pageable(to)) return;
  refuse(*stream.capture, "copy to pageable memory during capture of " + name_of(stream) +
                              ": it is complete on return, so it would have to wait");
}

void SimDevice::fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) {
  const Lock lock = enter_alive("fill");
  StreamState& state = stream_of("fill", stream);
  const Fill fill{to, value, bytes};
  executor_.check(fill);
  submit(state, fill);
}

void SimDevice::call_host(void (*function)(void*), void* argument, Stream stream) {
  const Lock lock = enter_alive("call_host");
  StreamState& state = stream_of("call_host", stream);
  if (function == nullptr) fail(Fault::invalid_argument, "call_host: no function");
  submit(state, HostCall{function, argument});
}

// ---- capture and replay

void SimDevice::refuse_in_capture(const char* call) {
  for (const auto& capture : captures_) {
    if (capture->thread != std::this_thread::get_id()) continue;
    refuse(*capture, std::string(call) + " during capture of " + name_of(*capture->origin));
  }
}

void SimDevice::begin_capture(Stream stream) {
  const Lock lock = enter_alive("begin_capture");
  StreamState& state = stream_of("begin_capture", stream);
  if (state.capture) {
    fail(Fault::capture_invalid, "begin_capture: " + name_of(state) + " is being captured already");
  }
  state.capture = std::make_shared<Capture>();
  state.capture->origin = &state;
  state.capture->thread = std::this_thread::get_id();
  captures_.push_back(state.capture);
}

Graph SimDevice::end_capture(Stream stream) {
  const Lock lock = enter_alive("end_capture");
  StreamState& state = stream_of("end_capture", stream);
  const std::shared_ptr<Capture> capture = state.capture;
  if (!capture || capture->origin != &state) {
    fail(Fault::capture_invalid, "end_capture: no capture began on " + name_of(state));
  }
  if (capture->thread != std::this_thread::get_id()) {
    fail(Fault::capture_invalid, "end_capture: another host thread began it");
  }
  const auto leave = [&] {
    capture->ended = true;
    std::erase(captures_, capture);
    for (const auto& other : streams_) {
      if (other->capture != capture) continue;
      other->capture.reset();
      other->frontier.clear();
    }
  };
  auto graph = std::make_unique<GraphState>();
  try {
    graph->data = finish(*capture);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  Graph handle = graph.get();
  graphs_[handle] = std::move(graph);
  return handle;
}

std::vector<GraphNode> SimDevice::nodes(Graph graph) {
  const Lock lock = enter_alive("nodes");
  std::vector<GraphNode> result;
  for (const Node& node : graph_of("nodes", graphs_, graph).data->nodes) {
    result.push_back(summary(node.operation));
  }
  return result;
}

GraphExec SimDevice::instantiate(Graph graph) {
  const Lock lock = enter_alive("instantiate");
  auto exec = std::make_unique<GraphState>(graph_of("instantiate", graphs_, graph));
  GraphExec handle = exec.get();
  graph_execs_[handle] = std::move(exec);
  return handle;
}

void SimDevice::replay(GraphExec graph, Stream stream) {
  const Lock lock = enter_alive("replay");
  StreamState& state = stream_of("replay", stream);
  GraphState& exec = graph_of("replay", graph_execs_, graph);
  if (state.capture) {
    refuse(*state.capture, "replay of a graph during capture of " + name_of(state));
  }
  if (!reached(exec.last_launch)) submit(state, Wait{exec.last_launch});
  exec.last_launch = {&state, state.enqueued() + 1};
  submit(state, Replay{exec.data});
}

void SimDevice::destroy_graph(Graph graph) {
  const Lock lock = enter("destroy_graph");
  graph_of("destroy_graph", graphs_, graph);
  graphs_.erase(graph);
}

void SimDevice::destroy_graph_exec(GraphExec graph) {
  const Lock lock = enter("destroy_graph_exec");
  graph_of("destroy_graph_exec", graph_execs_, graph);
  graph_execs_.erase(graph);
}

// ---- the kernels' side

void enqueue(Stream stream, KernelCall call) {
  if (stream == nullptr) fail(Fault::invalid_argument, "launch: no stream");
  auto* state = static_cast<StreamState*>(stream);
  state->device->launch(*state, std::move(call));
}

const Properties& stream_properties(Stream stream) {
  if (stream == nullptr) fail(Fault::invalid_argument, "stream_properties: no stream");
  return static_cast<StreamState*>(stream)->device->properties();
}

}  // namespace plumb::device::sim
