// SPDX-License-Identifier: Apache-2.0
//
// Sizes of device allocations. An op's table does not say how many rows a cache has, so the bytes
// after an address are looked up here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "device/forwarding_device.h"

namespace plumb::python {

// Allocations of all devices of this process.
class MemoryExtents {
 public:
  static MemoryExtents& all() {
    static MemoryExtents one;
    return one;
  }
  void* add(void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
    return memory;
  }
  void remove(void* memory) {
    const std::lock_guard lock(mutex_);
    sizes_.erase(reinterpret_cast<std::uintptr_t>(memory));
  }
  // Bytes from the address to the end of its allocation; the maximum if it belongs to none.
  std::size_t bytes_from(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::lock_guard lock(mutex_);
    const auto next = sizes_.upper_bound(at);
    if (next == sizes_.begin()) return std::numeric_limits<std::size_t>::max();
    const auto& [begin, bytes] = *std::prev(next);
    return at - begin <= bytes ? bytes - (at - begin) : std::numeric_limits<std::size_t>::max();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> sizes_;
};

class MeasuredDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  void* allocate(std::size_t bytes, std::string_view label) override {
    return MemoryExtents::all().add(inner().allocate(bytes, label), bytes);
  }
  void* allocate_sparse(std::size_t bytes, std::string_view label) override {
    return MemoryExtents::all().add(inner().allocate_sparse(bytes, label), bytes);
  }
  void free(void* memory) override {
    MemoryExtents::all().remove(memory);
    inner().free(memory);
  }
};

}  // namespace plumb::python
