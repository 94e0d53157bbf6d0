// SPDX-License-Identifier: Apache-2.0
//
// Buffers on a simulated device for tests that launch kernels directly.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace plumb::tests {

class DeviceBuffers {
 public:
  explicit DeviceBuffers(std::string_view platform)
      : device_(device::open_device(platform)), stream_(device_->create_stream()) {}

  template <class T>
  T* upload(const std::vector<T>& values) {
    void* memory = device_->allocate(values.size() * sizeof(T), "test");
    device_->copy(memory, values.data(), values.size() * sizeof(T), stream_);
    return static_cast<T*>(memory);
  }
  template <class T>
  T* allocate(std::size_t count) {
    return static_cast<T*>(device_->allocate(count * sizeof(T), "test"));
  }
  template <class T>
  std::vector<T> download(const T* memory, std::size_t count) {
    std::vector<T> values(count);
    device_->copy(values.data(), memory, count * sizeof(T), stream_);
    device_->synchronize(stream_);
    return values;
  }
  device::Device& device() { return *device_; }
  device::Stream stream() const { return stream_; }

 private:
  std::unique_ptr<device::Device> device_;
  device::Stream stream_;
};

}  // namespace plumb::tests
