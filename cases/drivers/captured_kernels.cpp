// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/captured_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "device/forwarding_device.h"

namespace plumb::cases {

// The kernel names of each captured graph; equal lists are kept once.
struct CapturedKernels::Graphs {
  std::mutex mutex;
  std::set<std::vector<std::string>> kernels;
};

class CapturedKernels::NotingDevice final : public device::ForwardingDevice {
 public:
  NotingDevice(std::unique_ptr<device::Device> inner, std::shared_ptr<Graphs> graphs)
      : ForwardingDevice(std::move(inner)), graphs_(std::move(graphs)) {}

  device::Graph end_capture(device::Stream stream) override {
    const device::Graph graph = ForwardingDevice::end_capture(stream);
    std::vector<std::string> kernels;
    for (const device::GraphNode& node : ForwardingDevice::nodes(graph)) {
      if (node.kind == "kernel") kernels.push_back(node.name);
    }
    const std::lock_guard lock(graphs_->mutex);
    graphs_->kernels.insert(std::move(kernels));
    return graph;
  }

 private:
  std::shared_ptr<Graphs> graphs_;
};

namespace {

// Describes a graph in which no kernel matches `pattern`; "" if one matches.
std::string what_is_missing(const std::vector<std::string>& kernels, const std::string& pattern) {
  const auto fits = [&](const std::string& name) {
    return !name.empty() && matches(pattern, name);
  };
  if (std::ranges::any_of(kernels, fits)) return "";
  if (kernels.empty()) return fmt::format("no kernel was captured, and {} is expected", pattern);
  const auto nameless = std::ranges::count(kernels, "");
  if (nameless == 0) {
    return fmt::format("no captured kernel matches {}: {}", pattern, fmt::join(kernels, ", "));
  }
  return fmt::format("the names of {} of {} captured kernels are unknown: one of them may match {}",
                     nameless, kernels.size(), pattern);
}

}  // namespace

CapturedKernels::CapturedKernels() : graphs_(std::make_shared<Graphs>()) {}

RunOptions CapturedKernels::noting(RunOptions options) const {
  options.open = [open = options.open, graphs = graphs_](std::string_view name,
                                                         const device::Conditions& conditions) {
    return std::unique_ptr<device::Device>(new NotingDevice(open(name, conditions), graphs));
  };
  return options;
}

std::vector<std::string> CapturedKernels::unexpected(
    const std::vector<std::string>& patterns) const {
  const std::lock_guard lock(graphs_->mutex);
  if (graphs_->kernels.empty()) return {"no graph was captured"};
  std::vector<std::string> lines;
  for (const std::vector<std::string>& kernels : graphs_->kernels) {
    for (const std::string& pattern : patterns) {
      std::string line = what_is_missing(kernels, pattern);
      if (!line.empty()) lines.push_back(std::move(line));
    }
  }
  return lines;
}

}  // namespace plumb::cases
