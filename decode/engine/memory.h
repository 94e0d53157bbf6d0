// SPDX-License-Identifier: Apache-2.0
//
// Device memory of one owner, freed with the owner. A list of the blocks lets checks test whether
// the addresses that a graph captured are still allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace plumb::device::decode {

class EngineMemory {
 public:
  explicit EngineMemory(Device& device) : device_(device) {}
  ~EngineMemory();
  EngineMemory(const EngineMemory&) = delete;
  EngineMemory& operator=(const EngineMemory&) = delete;

  // At least one element, holding what the device leaves there (poison). Throws DeviceError.
  template <class T>
  T* allocate(std::int64_t count, std::string_view label) {
    return static_cast<T*>(bytes(static_cast<std::size_t>(count) * sizeof(T), label));
  }
  // Scratch: a step reads only what the same step has written there. Between two steps the memory
  // may hold anything.
  template <class T>
  T* allocate_scratch(std::int64_t count, std::string_view label) {
    T* const memory = allocate<T>(count, label);
    blocks_.back().scratch = true;
    return memory;
  }

  struct NamedBlock {
    // Memory of one layer has its name first, "layer 1 attn_sink" or "draft layer 0 window cache".
    std::string label;
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    bool scratch = false;
  };
  const std::vector<NamedBlock>& blocks() const { return blocks_; }
  // The block that holds this address. nullptr: none.
  const NamedBlock* block_of(const std::byte* address) const;

 private:
  void* bytes(std::size_t count, std::string_view label);

  Device& device_;
  std::vector<NamedBlock> blocks_;
};

}  // namespace plumb::device::decode
