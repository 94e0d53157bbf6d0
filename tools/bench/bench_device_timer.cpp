// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "tools/bench/bench_device.h"

namespace plumb::tools {

namespace {

constexpr double kLongEnough = 5e-3;  // seconds per replay
constexpr int kRepetitions = 15;

}  // namespace

DeviceTimer::DeviceTimer(device::Device& device, device::Stream stream)
    : device_(device),
      stream_(stream),
      before_(device.create_timing_event()),
      after_(device.create_timing_event()) {}

device::GraphExec DeviceTimer::capture(const std::vector<DeviceLaunch>& launches,
                                       std::size_t rounds) {
  device_.begin_capture(stream_);
  for (std::size_t i = 0; i < rounds * launches.size(); ++i) launches[i % launches.size()]();
  const device::Graph graph = device_.end_capture(stream_);
  const device::GraphExec executable = device_.instantiate(graph);
  device_.destroy_graph(graph);
  return executable;
}

double DeviceTimer::replay_seconds(device::GraphExec graph) {
  device_.record(before_, stream_);
  device_.replay(graph, stream_);
  device_.record(after_, stream_);
  device_.synchronize_event(after_);
  return device_.elapsed_seconds(before_, after_);
}

std::vector<double> DeviceTimer::seconds(const std::vector<DeviceLaunch>& launches) {
  for (const DeviceLaunch& launch : launches) launch();  // loads the kernels, and makes plans
  device_.synchronize(stream_);
  device::GraphExec graph = capture(launches, 1);
  const double once = std::min(replay_seconds(graph), replay_seconds(graph));
  device_.destroy_graph_exec(graph);
  const auto rounds = static_cast<std::size_t>(std::ceil(kLongEnough / std::max(once, 1e-6)));
  graph = capture(launches, rounds);
  std::vector<double> seconds;
  for (int repetition = -2; repetition < kRepetitions; ++repetition) {
    const double spent = replay_seconds(graph);
    if (repetition >= 0) {
      seconds.push_back(spent / static_cast<double>(rounds * launches.size()));
    }
  }
  device_.destroy_graph_exec(graph);
  return seconds;
}

}  // namespace plumb::tools
