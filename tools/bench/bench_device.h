// SPDX-License-Identifier: Apache-2.0
//
// plumb bench --platform: measures the rates of a real device, and each op at production size as a
// share of these rates. Results are not judged.
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

// One launch on the timer's stream, with its own buffers. Throws if it fails.
using DeviceLaunch = std::function<void()>;

class DeviceTimer {
 public:
  DeviceTimer(device::Device& device, device::Stream stream);

  // Seconds per launch, one number per repetition. A graph holds the launches in turn, repeated
  // until a replay is long compared with its overhead. Events before and after the replay give its
  // time.
  std::vector<double> seconds(const std::vector<DeviceLaunch>& launches);

 private:
  device::GraphExec capture(const std::vector<DeviceLaunch>& launches, std::size_t rounds);
  double replay_seconds(device::GraphExec graph);

  device::Device& device_;
  device::Stream stream_;
  device::Event before_, after_;
};

// A row of an op at production size. Other parameters have their defaults.
struct DeviceOp {
  std::string_view op;
  std::string_view shape = {};  // named if an op is measured at several shapes
  Target target;
  bool multiplies_matrices = false;  // else its operations run on the fp32 units
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, std::string> words = {};

  std::string name() const {
    return std::string(op) + (shape.empty() ? "" : ", ") + std::string(shape);
  }
};
std::vector<DeviceOp> device_ops();

struct DeviceRates {
  double copy = 0;                      // bytes per second, reads and writes counted
  double multiply_add = 0, matrix = 0;  // operations per second
};
// Measures the rates, and adds them to `measured`.
DeviceRates measure_rates(const std::string& platform, const device::RateKernels& kernels,
                          std::vector<Measurement>& measured);

struct DeviceBenchOptions {
  std::string platform;
  std::vector<std::string> only;  // names of ops; empty: all
  // Milliseconds of torch.topk on this machine, by DeviceOp::name() (tools/bench/torch_topk.py).
  std::map<std::string, double> torch_topk;
};
std::vector<Measurement> bench_device(const DeviceBenchOptions& options);

}  // namespace plumb::tools
