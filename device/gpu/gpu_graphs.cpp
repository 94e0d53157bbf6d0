// SPDX-License-Identifier: Apache-2.0
//
// Capture, instantiation, replay and listing of graphs. Captures are thread-local: calls of other
// threads neither become nodes of them nor invalidate them.
#include <algorithm>

#include "device/gpu/gpu_device.h"
#include "device/gpu/kernel_name.h"

namespace plumb::device::PLUMB_GPU {

void GpuDevice::begin_capture(Stream stream) {
  runtime::begin_capture(static_cast<NativeStream>(stream));
  const std::lock_guard lock(mutex_);
  captures_.push_back({static_cast<NativeStream>(stream), std::this_thread::get_id()});
}

bool GpuDevice::capturing() {
  const std::lock_guard lock(mutex_);
  return std::any_of(captures_.begin(), captures_.end(), [](const OpenCapture& capture) {
    return capture.thread == std::this_thread::get_id();
  });
}

Graph GpuDevice::end_capture(Stream stream) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(captures_, [&](const OpenCapture& one) { return one.stream == stream; });
  }
  return runtime::end_capture(static_cast<NativeStream>(stream));
}

std::vector<GraphNode> GpuDevice::nodes(Graph graph) {
  std::vector<GraphNode> all;
  for (const NativeNode node : runtime::nodes(static_cast<NativeGraph>(graph))) {
    all.push_back(runtime::describe_node(node));
    all.back().name = short_kernel_name(all.back().name);
  }
  return all;
}

GraphExec GpuDevice::instantiate(Graph graph) {
  return runtime::instantiate(static_cast<NativeGraph>(graph));
}

void GpuDevice::replay(GraphExec graph, Stream stream) {
  runtime::launch(static_cast<NativeGraphExec>(graph), static_cast<NativeStream>(stream));
}

void GpuDevice::destroy_graph(Graph graph) { runtime::destroy(static_cast<NativeGraph>(graph)); }

void GpuDevice::destroy_graph_exec(GraphExec graph) {
  runtime::destroy(static_cast<NativeGraphExec>(graph));
}

}  // namespace plumb::device::PLUMB_GPU
