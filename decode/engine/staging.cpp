// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/staging.h"

#include <cstring>
#include <stdexcept>

namespace plumb::device::decode {

namespace {

constexpr std::size_t kAlignment = 16;

std::size_t padded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Staging::Staging(Device& device, const EngineMemory& buffers, bool waits)
    : device_(device), buffers_(buffers), waits_(waits) {
  std::size_t bytes = 0;
  for (const EngineMemory::NamedBlock& block : buffers.blocks()) bytes += padded(block.bytes);
  for (Mirror& mirror : mirrors_) {
    mirror.memory = static_cast<std::byte*>(device.allocate_pinned(bytes));
    mirror.copied = device.create_event();
  }
}

Staging::~Staging() {
  for (const Mirror& mirror : mirrors_) {
    device_.destroy_event(mirror.copied);
    device_.free_pinned(mirror.memory);
  }
}

std::size_t Staging::place_of(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  std::size_t place = 0;
  for (const EngineMemory::NamedBlock& block : buffers_.blocks()) {
    if (block.address <= at && at < block.address + block.bytes) {
      return place + static_cast<std::size_t>(at - block.address);
    }
    place += padded(block.bytes);
  }
  throw std::out_of_range("a step's inputs go where they have no buffer");
}

void Staging::send(const std::vector<Transfer>& transfers, Stream stream) {
  Mirror& mirror = mirrors_[next_];
  next_ = 1 - next_;
  if (mirror.used && waits_) device_.synchronize_event(mirror.copied);
  for (const Transfer& transfer : transfers) {
    std::byte* const there = mirror.memory + place_of(transfer.to);
    std::memcpy(there, transfer.from, transfer.bytes);
    device_.copy(transfer.to, there, transfer.bytes, stream);
  }
  device_.record(mirror.copied, stream);
  mirror.used = true;
}

}  // namespace plumb::device::decode
