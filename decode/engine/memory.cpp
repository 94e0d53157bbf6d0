// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/memory.h"

#include <algorithm>

namespace plumb::device::decode {

EngineMemory::~EngineMemory() {
  for (const NamedBlock& block : blocks_) device_.free(block.address);
}

const EngineMemory::NamedBlock* EngineMemory::block_of(const std::byte* address) const {
  const auto found = std::ranges::find_if(blocks_, [&](const NamedBlock& block) {
    return block.address <= address && address < block.address + block.bytes;
  });
  return found == blocks_.end() ? nullptr : &*found;
}

void* EngineMemory::bytes(std::size_t count, std::string_view label) {
  const std::size_t bytes = std::max<std::size_t>(count, 1);
  void* const address = device_.allocate(bytes, label);
  blocks_.push_back({std::string(label), static_cast<std::byte*>(address), bytes});
  return address;
}

}  // namespace plumb::device::decode
