// SPDX-License-Identifier: Apache-2.0
//
// What plumb bench --platform measures on a real device: its rates, and each op at production size
// as a share of what they allow. Inputs are made on the device from one block of random numbers;
// nothing is judged here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "tools/bench/bench.h"

namespace plumb::tools {

// One launch with the buffers it was made for.
using DeviceLaunch = std::function<plumb_status(device::Stream)>;

// A device with a stream, a clock, and memory that lasts until release().
class DeviceBed {
 public:
  explicit DeviceBed(std::string_view platform);

  device::Device& device() { return *device_; }
  device::Stream stream() { return stream_; }

  template <typename T>
  T* room(std::int64_t count) {
    return static_cast<T*>(allocate(count * static_cast<std::int64_t>(sizeof(T))));
  }
  // Normal random numbers; another part of them each time.
  std::uint16_t* bf16(std::int64_t count);
  float* fp32(std::int64_t count);
  template <typename T>
  T* upload(const std::vector<T>& values) {
    T* const memory = room<T>(static_cast<std::int64_t>(values.size()));
    copy_in(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }
  void release();

  // Seconds per launch, one number per repetition: the launches in turn in one graph, as often as
  // makes it long against what a replay costs, between two events. `what`: for errors.
  std::vector<double> seconds(const std::string& what, const std::vector<DeviceLaunch>& launches);

 private:
  void* allocate(std::int64_t bytes);
  void copy_in(void* to, const void* from, std::size_t bytes);
  void repeat(void* to, const void* pattern, std::int64_t bytes);
  device::GraphExec capture(const std::string& what, const std::vector<DeviceLaunch>& launches,
                            std::size_t rounds);
  double replay_seconds(device::GraphExec graph);

  std::unique_ptr<device::Device> device_;
  device::Stream stream_ = nullptr;
  device::Event before_ = nullptr, after_ = nullptr;
  void *bf16_pattern_ = nullptr, *fp32_pattern_ = nullptr;
  std::int64_t next_part_ = 0;
  std::vector<void*> memory_;
};

// An op at the size that it has in production.
struct DeviceOp {
  std::string name;  // the op's, and the shape where an op is measured at several
  std::string_view op;
  Target target;
  double bytes = 0;          // of each tensor once
  double multiply_adds = 0;  // of the fp32 units
  double matrix_multiply_adds = 0;
  std::function<DeviceLaunch(DeviceBed&, const device::OpEntry&)> make_set;
};
std::vector<DeviceOp> device_ops();

struct DeviceBenchOptions {
  std::string platform;
  std::vector<std::string> only;  // ops; empty: all
  // Milliseconds that torch.topk takes on this machine, by DeviceOp::name
  // (tools/bench/torch_topk.py).
  std::map<std::string, double> torch_topk;
};
std::vector<Measurement> bench_device(const DeviceBenchOptions& options);

}  // namespace plumb::tools
