// SPDX-License-Identifier: Apache-2.0
#include "device/decode/staging.h"

#include <cstring>
#include <stdexcept>

namespace plumb::device::decode {

namespace {

constexpr std::size_t kAlignment = 16;

std::size_t padded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Staging::Staging(Device& device, std::size_t bytes) : device_(device), bytes_(bytes) {
  for (Area& area : areas_) {
    area.memory = static_cast<std::byte*>(device.allocate_pinned(bytes));
    area.copied = device.create_event();
  }
}

Staging::~Staging() {
  for (const Area& area : areas_) {
    device_.destroy_event(area.copied);
    device_.free_pinned(area.memory);
  }
}

void Staging::send(const std::vector<Transfer>& transfers, Stream stream) {
  Area& area = areas_[next_];
  next_ = 1 - next_;
  if (area.used) device_.synchronize_event(area.copied);
  std::size_t at = 0;
  for (const Transfer& transfer : transfers) {
    if (at + transfer.bytes > bytes_) throw std::length_error("a step's inputs exceed the staging");
    std::memcpy(area.memory + at, transfer.from, transfer.bytes);
    device_.copy(transfer.to, area.memory + at, transfer.bytes, stream);
    at += padded(transfer.bytes);
  }
  device_.record(area.copied, stream);
  area.used = true;
}

}  // namespace plumb::device::decode
