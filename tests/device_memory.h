// SPDX-License-Identifier: Apache-2.0
//
// Memory of one simulated device, filled from the host, for tests that call launchers by hand.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace plumb::cases {

class DeviceMemory {
 public:
  explicit DeviceMemory(std::string_view platform) : device_(device::open_device(platform, {})) {
    stream = device_->create_stream();
  }
  template <class T>
  T* put(const std::vector<T>& values) {
    auto* memory = static_cast<T*>(device_->allocate(values.size() * sizeof(T), "test"));
    device_->copy(memory, values.data(), values.size() * sizeof(T), stream);
    return memory;
  }
  template <class T>
  T* reserve(std::int64_t count) {
    return static_cast<T*>(
        device_->allocate_sparse(static_cast<std::size_t>(count) * sizeof(T), "test"));
  }
  template <class T>
  std::vector<T> get(const T* memory, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    device_->copy(values.data(), memory, values.size() * sizeof(T), stream);
    return values;
  }
  device::Stream stream;

 private:
  std::unique_ptr<device::Device> device_;
};

}  // namespace plumb::cases
