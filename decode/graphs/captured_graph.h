// SPDX-License-Identifier: Apache-2.0
//
// A captured graph that is destroyed with its owner.
#pragma once

#include <functional>
#include <vector>

#include "device/device.h"

namespace plumb::device::decode {

class CapturedGraph {
 public:
  // Captures what `enqueue` enqueues on the stream; the graph may be empty. If `enqueue` throws,
  // the capture is ended and the exception passed on.
  CapturedGraph(Device& device, Stream stream, const std::function<void()>& enqueue);
  ~CapturedGraph();
  CapturedGraph(CapturedGraph&& other) noexcept;
  CapturedGraph& operator=(CapturedGraph&&) = delete;

  GraphExec exec() const { return exec_; }
  std::vector<GraphNode> nodes() const { return device_.nodes(graph_); }

 private:
  Device& device_;
  Graph graph_ = nullptr;
  GraphExec exec_ = nullptr;
};

}  // namespace plumb::device::decode
