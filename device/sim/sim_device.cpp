// SPDX-License-Identifier: Apache-2.0
//
// Memory, streams, events and operations of the simulated device. Graphs are in
// sim_device_graphs.cpp.
#include "device/sim/sim_device.h"

#include <algorithm>
#include <utility>

namespace plumb::device::sim {

namespace {

[[noreturn]] void fail(ErrorKind fault, const std::string& what) { throw DeviceError(fault, what); }

// True if all pending work of the stream is copies, fills and waits.
bool only_moves(const StreamState& stream) {
  return std::ranges::all_of(stream.pending, [](const Operation& one) {
    return std::holds_alternative<MemoryCopy>(one) || std::holds_alternative<MemoryFill>(one) ||
           std::holds_alternative<Wait>(one);
  });
}

}  // namespace

SimDevice::SimDevice(const Properties& properties, const Conditions& conditions)
    : properties_(properties),
      conditions_(conditions),
      memory_({.poison = kFreshPoison, .page_guards = conditions.page_guards}),
      pinned_({.poison = kPinnedPoison, .page_guards = conditions.page_guards}),
      executor_(properties_, conditions_, memory_, pinned_) {}

SimDevice::~SimDevice() { give_back(std::move(thread_)); }

SimDevice::Lock SimDevice::enter(const char* call) {
  if (executor_.is_running_here()) {
    fail(ErrorKind::invalid_argument,
         std::string(call) + ": called by a host function or kernel; those may not use the device");
  }
  return Lock(mutex_);
}

SimDevice::Lock SimDevice::enter_alive(const char* call) {
  Lock lock = enter(call);
  if (lost_ && lost_->kind() == ErrorKind::unsupported) throw DeviceError(*lost_);
  if (lost_) {
    fail(lost_->kind(), std::string(call) + ": the device is lost since: " + lost_->what());
  }
  if (held_) throw *std::exchange(held_, std::nullopt);
  return lock;
}

StreamState& SimDevice::stream_of(const char* call, Stream stream) {
  for (const auto& known : streams_) {
    if (known.get() == stream && !known->destroyed) return *known;
  }
  fail(ErrorKind::invalid_argument, std::string(call) + ": not a stream of this device");
}

EventState& SimDevice::event_of(const char* call, Event event) {
  const auto found = events_.find(event);
  if (found != events_.end() && !found->second->destroyed) return *found->second;
  fail(ErrorKind::invalid_argument, std::string(call) + ": not an event of this device");
}

SimDevice::GraphState& SimDevice::graph_of(const char* call, GraphTable& table, void* graph) {
  const auto found = table.find(graph);
  if (found != table.end() && found->second->data) return *found->second;
  fail(ErrorKind::capture_invalid, std::string(call) + ": no such graph, or it has been destroyed");
}

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

void SimDevice::free_of(const char* call, Memory& from, void* memory) {
  const Lock lock = enter(call);
  refuse_in_capture(call);
  const MemoryMap::Region* region = from.find(reinterpret_cast<std::uintptr_t>(memory));
  if (region != nullptr && !region->freed) note_held(region->begin, region->end, *region->label);
  from.free(memory);
}

void SimDevice::free(void* memory) { free_of("free", memory_, memory); }

void* SimDevice::allocate_pinned(std::size_t bytes) {
  const Lock lock = enter_alive("allocate_pinned");
  refuse_in_capture("allocate_pinned");
  return pinned_.allocate(bytes, "pinned memory");
}

void SimDevice::free_pinned(void* memory) { free_of("free_pinned", pinned_, memory); }

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
  const Event handle = event.get();
  events_[handle] = std::move(event);
  return handle;
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
    fail(ErrorKind::capture_invalid, "synchronize_event: the event was recorded in a capture");
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
  refuse_in_captures("synchronize() of the device", captures_);
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

// Simulated threads belong to the device's own thread. Work without kernels needs no other thread,
// and a change of threads takes longer than most copies.
void SimDevice::run_everything() {
  const auto run = [&] { run_interleaved(streams_, executor_, conditions_.seed + tickets_); };
  if (std::ranges::all_of(streams_, [](const auto& one) { return only_moves(*one); })) return run();
  if (!thread_) thread_ = take_device_thread();
  thread_->run(run);
}

void SimDevice::drain(const StreamPoint& point) {
  if (reached(point)) return;
  try {
    if (conditions_.policy == Policy::interleaved) return run_everything();
    run_until(point, executor_);
  } catch (const DeviceError& error) {
    lost_ = error;
    throw;
  } catch (const std::exception& error) {
    lost_ = DeviceError(ErrorKind::other, std::string("an operation threw: ") + error.what());
    throw *lost_;
  }
}

void SimDevice::launch(StreamState& stream, KernelCall call) {
  const Lock lock = enter_alive("launch");
  stream_of("launch", &stream);
  check_limits(call, properties_);
  submit(stream, std::move(call));
}

void SimDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  const Lock lock = enter_alive("copy");
  StreamState& state = stream_of("copy", stream);
  MemoryCopy copy{to, from, bytes, nullptr};
  executor_.check(copy);
  if (state.capture) {
    refuse_copy_to_pageable(state, to);
  } else if (pageable(from) && conditions_.policy != Policy::early) {
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
  const MemoryFill fill{to, value, bytes};
  executor_.check(fill);
  submit(state, fill);
}

void SimDevice::call_host(void (*function)(void*), void* argument, Stream stream) {
  launch_host("", function, argument, {}, stream);
}

void SimDevice::launch_host(std::string_view name, void (*function)(void*), void* argument,
                            std::span<const std::byte> words, Stream stream) {
  const Lock lock = enter_alive("call_host");
  StreamState& state = stream_of("call_host", stream);
  if (function == nullptr) fail(ErrorKind::invalid_argument, "call_host: no function");
  submit(state, HostCall{function, argument, std::string(name), words});
}

void enqueue(Stream stream, KernelCall call) {
  if (stream == nullptr) fail(ErrorKind::invalid_argument, "launch: no stream");
  auto* state = static_cast<StreamState*>(stream);
  state->device->launch(*state, std::move(call));
}

const Properties& stream_properties(Stream stream) {
  if (stream == nullptr) fail(ErrorKind::invalid_argument, "stream_properties: no stream");
  return static_cast<StreamState*>(stream)->device->properties();
}

}  // namespace plumb::device::sim
