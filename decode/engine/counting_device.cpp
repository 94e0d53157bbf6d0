// SPDX-License-Identifier: Apache-2.0
#include "decode/engine/counting_device.h"

namespace plumb::device::decode {

void* CountingDevice::note(void* memory, std::size_t bytes) {
  known_[static_cast<const std::byte*>(memory)] = bytes;
  return memory;
}

bool CountingDevice::known(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  const auto found = known_.lower_bound(at);  // the last block that starts at or before `at`
  return found != known_.end() && at < found->first + found->second;
}

void* CountingDevice::allocate(std::size_t bytes, std::string_view label) {
  return note(ForwardingDevice::allocate(bytes, label), bytes);
}

void* CountingDevice::allocate_sparse(std::size_t bytes, std::string_view label) {
  return note(ForwardingDevice::allocate_sparse(bytes, label), bytes);
}

void CountingDevice::free(void* memory) {
  known_.erase(static_cast<const std::byte*>(memory));
  ForwardingDevice::free(memory);
}

void* CountingDevice::allocate_pinned(std::size_t bytes) {
  return note(ForwardingDevice::allocate_pinned(bytes), bytes);
}

void CountingDevice::free_pinned(void* memory) {
  known_.erase(static_cast<const std::byte*>(memory));
  ForwardingDevice::free_pinned(memory);
}

void CountingDevice::synchronize_event(Event event) {
  ++event_waits_;
  ForwardingDevice::synchronize_event(event);
}

void CountingDevice::synchronize(Stream stream) {
  ++synchronizations_;
  ForwardingDevice::synchronize(stream);
}

void CountingDevice::synchronize() {
  ++synchronizations_;
  ForwardingDevice::synchronize();
}

void CountingDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (!known(to)) ++synchronizations_;
  ForwardingDevice::copy(to, from, bytes, stream);
}

}  // namespace plumb::device::decode
