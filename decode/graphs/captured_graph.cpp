// SPDX-License-Identifier: Apache-2.0
#include "decode/graphs/captured_graph.h"

#include <utility>

namespace plumb::device::decode {

namespace {

// Ends a capture that failed, so that the stream is usable again.
void abandon(Device& device, Stream stream) {
  try {
    device.destroy_graph(device.end_capture(stream));
  } catch (const DeviceError&) {
  }
}

}  // namespace

CapturedGraph::CapturedGraph(Device& device, Stream stream, const std::function<void()>& enqueue)
    : device_(device) {
  device_.begin_capture(stream);
  try {
    enqueue();
  } catch (...) {
    abandon(device_, stream);
    throw;
  }
  graph_ = device_.end_capture(stream);
  exec_ = device_.instantiate(graph_);
}

CapturedGraph::CapturedGraph(CapturedGraph&& other) noexcept
    : device_(other.device_),
      graph_(std::exchange(other.graph_, nullptr)),
      exec_(std::exchange(other.exec_, nullptr)) {}

CapturedGraph::~CapturedGraph() {
  if (exec_ != nullptr) device_.destroy_graph_exec(exec_);
  if (graph_ != nullptr) device_.destroy_graph(graph_);
}

}  // namespace plumb::device::decode
