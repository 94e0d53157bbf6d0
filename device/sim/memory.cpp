// SPDX-License-Identifier: Apache-2.0
#include "device/sim/memory.h"

#include <algorithm>

namespace plumb::device::sim {

struct Memory::Block {
  std::string label;
  Region region;                      // what the kernel's user asked for
  std::uintptr_t begin = 0, end = 0;  // guard zones included
  bool quarantined = false;
};

namespace {
void poison(std::uintptr_t begin, std::uintptr_t end, std::uint16_t word) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(begin);
  const std::size_t count = end - begin;
  std::fill_n(reinterpret_cast<std::uint16_t*>(bytes), count / 2, word);
  if (count % 2 != 0) bytes[count - 1] = static_cast<std::uint8_t>(word & 0xFF);
}
}  // namespace

Memory::Memory(const Options& options) : options_(options), space_(options.address_space) {}
Memory::~Memory() = default;

void* Memory::allocate(std::size_t bytes, std::string_view label) {
  if (bytes > options_.limit - live_bytes_) {
    throw DeviceError(Fault::out_of_memory, "allocate '" + std::string(label) +
                                                "': " + std::to_string(bytes) + " bytes beside " +
                                                std::to_string(live_bytes_) + " live ones");
  }
  auto block = std::make_unique<Block>();
  const std::size_t size = round_up(round_up(bytes, kAlignment) + 2 * kGuardBytes, page_size());
  block->begin = space_.take(size);
  block->end = block->begin + size;
  block->label = label;
  space_.open_pages(block->begin, size);
  block->region.begin = block->begin + kGuardBytes;
  block->region.end = block->region.begin + bytes;
  block->region.label = &block->label;
  poison(block->region.begin, block->region.end, options_.poison);
  live_bytes_ += bytes;
  void* memory = reinterpret_cast<void*>(block->region.begin);
  const auto place = std::lower_bound(
      blocks_.begin(), blocks_.end(), block->begin,
      [](const auto& other, std::uintptr_t begin) { return other->begin < begin; });
  blocks_.insert(place, std::move(block));
  return memory;
}

void* Memory::allocate_sparse(std::size_t bytes, std::string_view label) {
  return allocate(bytes, label);
}

const Memory::Block* Memory::find_block(std::uintptr_t address) const {
  auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), address,
      [](std::uintptr_t value, const auto& other) { return value < other->begin; });
  if (after == blocks_.begin()) return nullptr;
  const Block* block = std::prev(after)->get();
  return address < block->end ? block : nullptr;
}

const MemoryMap::Region* Memory::find(std::uintptr_t address) const {
  const Block* block = find_block(address);
  return block == nullptr ? nullptr : &block->region;
}

void Memory::free(void* memory) {
  if (memory == nullptr) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  auto* block = const_cast<Block*>(find_block(address));
  if (block == nullptr || block->region.begin != address || block->region.freed) {
    throw DeviceError(Fault::invalid_argument, "free: not the start of a live allocation");
  }
  block->region.freed = true;
  live_bytes_ -= block->region.end - block->region.begin;
  poison(block->region.begin, block->region.end, kFreedPoison);
}

std::vector<GuardDamage> Memory::check_guards() { return {}; }

bool Memory::owns(const void* address) const {
  return space_.holds(reinterpret_cast<std::uintptr_t>(address));
}

void Memory::check_range(std::string_view call, const void* begin, std::size_t bytes) const {
  if (!owns(begin) || bytes == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const Region* region = find(address);
  if (region == nullptr) {
    throw DeviceError(Fault::out_of_bounds, std::string(call) + ": not an allocation");
  }
  if (region->freed) {
    throw DeviceError(Fault::use_after_free,
                      std::string(call) + ": '" + *region->label + "' has been freed");
  }
  if (address < region->begin || address > region->end || bytes > region->end - address) {
    throw DeviceError(Fault::out_of_bounds, std::string(call) + ": bytes " +
                                                std::to_string(address - region->begin) + " to " +
                                                std::to_string(address - region->begin + bytes) +
                                                " of '" + *region->label + "', which has " +
                                                std::to_string(region->end - region->begin));
  }
}

}  // namespace plumb::device::sim
