// SPDX-License-Identifier: Apache-2.0
//
// Device memory for copies of tensors. A simulated device backs its pages when a copy is made, so
// the copies of a graph that is captured and never replayed cost next to nothing.
#pragma once

#include <cstddef>
#include <vector>

#include "device/device.h"

namespace plumb::cases {

class CopyMemory {
 public:
  explicit CopyMemory(device::Device& device) : device_(device) {}
  ~CopyMemory();
  CopyMemory(const CopyMemory&) = delete;
  CopyMemory& operator=(const CopyMemory&) = delete;

  struct CopyBlock {
    std::byte* address = nullptr;  // 256-byte aligned
    std::size_t bytes = 0;
  };
  // Holds zeros, or what the last owner of the block left there. Throws DeviceError.
  CopyBlock take(std::size_t bytes);
  // No pending work may use the blocks.
  void give_back(const std::vector<CopyBlock>& blocks);

 private:
  device::Device& device_;
  std::vector<void*> chunks_;
  CopyBlock rest_;  // the part of the latest chunk that nobody has taken
  std::vector<CopyBlock> spare_;
};

}  // namespace plumb::cases
