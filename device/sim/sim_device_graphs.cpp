// SPDX-License-Identifier: Apache-2.0
//
// Capture, instantiate and replay of the simulated device.
#include <fmt/format.h>

#include <utility>

#include "device/sim/sim_device.h"

namespace plumb::device::sim {

void SimDevice::refuse_in_captures(const std::string& call,
                                   const std::vector<std::shared_ptr<Capture>>& captures) const {
  if (captures.empty()) return;
  const std::string what = call + " during capture of " + name_of(*captures.front()->origin);
  for (const auto& capture : captures) spoil(*capture, what);
  throw DeviceError(ErrorKind::capture_unsupported, what);
}

void SimDevice::refuse_in_capture(const char* call) const {
  refuse_in_captures(call, captures_of_this_thread());
}

std::vector<std::shared_ptr<Capture>> SimDevice::captures_of_this_thread() const {
  std::vector<std::shared_ptr<Capture>> mine = captures_;
  std::erase_if(mine, [](const auto& one) { return one->thread != std::this_thread::get_id(); });
  return mine;
}

bool SimDevice::capturing() {
  const Lock lock = enter("capturing");
  return !captures_of_this_thread().empty();
}

void SimDevice::begin_capture(Stream stream) {
  const Lock lock = enter_alive("begin_capture");
  StreamState& state = stream_of("begin_capture", stream);
  if (state.capture) {
    throw DeviceError(ErrorKind::capture_invalid,
                      "begin_capture: " + name_of(state) + " is being captured already");
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
    throw DeviceError(ErrorKind::capture_invalid,
                      "end_capture: no capture began on " + name_of(state));
  }
  if (capture->thread != std::this_thread::get_id()) {
    throw DeviceError(ErrorKind::capture_invalid, "end_capture: another host thread began it");
  }
  leave_capture(*capture);
  auto graph = std::make_unique<GraphState>();
  graph->data = finish(*capture);
  Graph handle = graph.get();
  graphs_[handle] = std::move(graph);
  return handle;
}

void SimDevice::leave_capture(Capture& capture) {
  capture.ended = true;
  std::erase_if(captures_, [&](const auto& one) { return one.get() == &capture; });
  for (const auto& stream : streams_) {
    if (stream->capture.get() != &capture) continue;
    stream->capture.reset();
    if (stream.get() == capture.origin) capture.last = std::move(stream->frontier);
    stream->frontier.clear();
  }
}

std::vector<GraphNode> SimDevice::nodes(Graph graph) {
  const Lock lock = enter_alive("nodes");
  std::vector<GraphNode> result;
  for (const CapturedNode& node : graph_of("nodes", graphs_, graph).data->nodes) {
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

namespace {

// A node that keeps an address in [begin, end), -1 if none does. A guessed word has to equal
// `begin`: half of an address joined with a number is often inside some memory, but hardly ever its
// start.
int node_with(const GraphData& graph, std::uintptr_t begin, std::uintptr_t end) {
  const auto found = graph.addresses.lower_bound(begin);
  if (found != graph.addresses.end() && found->first < end) return found->second;
  const auto guess = graph.guesses.find(begin);
  return guess == graph.guesses.end() ? -1 : guess->second;
}

}  // namespace

void SimDevice::note_held(std::uintptr_t begin, std::uintptr_t end, std::string_view label) {
  for (const auto& [handle, graph] : graph_execs_) {
    if (held_ || !graph->data) continue;
    const int found = node_with(*graph->data, begin, end);
    if (found < 0) continue;
    const CapturedNode& node = graph->data->nodes[static_cast<std::size_t>(found)];
    held_.emplace(ErrorKind::held_by_graph,
                  fmt::format("'{}' was freed, but {} of a live graph uses it", label,
                              describe(node.operation)));
  }
}

void SimDevice::note_given_back(const void* begin, std::size_t bytes, std::string_view label) {
  const Lock lock = enter("note_given_back");
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  note_held(address, address + bytes, label);
}

void SimDevice::destroy_graph(Graph graph) {
  const Lock lock = enter("destroy_graph");
  graph_of("destroy_graph", graphs_, graph).data.reset();
}

void SimDevice::destroy_graph_exec(GraphExec graph) {
  const Lock lock = enter("destroy_graph_exec");
  graph_of("destroy_graph_exec", graph_execs_, graph).data.reset();
}

}  // namespace plumb::device::sim
