// SPDX-License-Identifier: Apache-2.0
//
// What plumb bench --platform measures on a real device: its rates, and each op at production size
// as a share of what they allow. Nothing is judged here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "tools/bench/bench.h"

namespace plumb::tools {

// One launch on the timer's stream, with buffers of its own. Throws if it fails.
using DeviceLaunch = std::function<void()>;

class DeviceTimer {
 public:
  DeviceTimer(device::Device& device, device::Stream stream);

  // Seconds per launch, one number per repetition: the launches in turn in one graph, as often as
  // makes it long against what a replay costs, between two events.
  std::vector<double> seconds(const std::vector<DeviceLaunch>& launches);

 private:
  device::GraphExec capture(const std::vector<DeviceLaunch>& launches, std::size_t rounds);
  double replay_seconds(device::GraphExec graph);

  device::Device& device_;
  device::Stream stream_;
  device::Event before_, after_;
};

// A row of an op at the size that it has in production. Parameters that it does not name have their
// defaults.
struct DeviceOp {
  std::string_view op;
  std::string_view shape = {};  // where an op is measured at several
  Target target;
  bool multiplies_matrices = false;  // else its operations are those of the fp32 units
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, std::string> words = {};

  std::string name() const {
    return std::string(op) + (shape.empty() ? "" : ", ") + std::string(shape);
  }
};
std::vector<DeviceOp> device_ops();

struct DeviceRates {
  double copy = 0;                      // bytes per second, read and written
  double multiply_add = 0, matrix = 0;  // operations per second
};
// Also as measurements.
DeviceRates measure_rates(const std::string& platform, const device::RateKernels& kernels,
                          std::vector<Measurement>& measured);

struct DeviceBenchOptions {
  std::string platform;
  std::vector<std::string> only;  // ops; empty: all
  // Milliseconds that torch.topk takes on this machine, by DeviceOp::name()
  // (tools/bench/torch_topk.py).
  std::map<std::string, double> torch_topk;
};
std::vector<Measurement> bench_device(const DeviceBenchOptions& options);

}  // namespace plumb::tools
