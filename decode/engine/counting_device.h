// SPDX-License-Identifier: Apache-2.0
//
// Counts where the host waits for a device. What was allocated through it is known to be no
// ordinary memory, so that copies to the latter, which wait, are told from the others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "device/forwarding_device.h"

namespace plumb::device::decode {

class CountingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  // Waits for a stream or for the device, and copies to ordinary memory.
  std::int64_t synchronizations() const { return synchronizations_; }
  // Waits for an event: for work of the past, as staging waits for the copies of the step before
  // last. They need not take time.
  std::int64_t event_waits() const { return event_waits_; }

  void* allocate(std::size_t bytes, std::string_view label) override;
  void* allocate_sparse(std::size_t bytes, std::string_view label) override;
  void free(void* memory) override;
  void* allocate_pinned(std::size_t bytes) override;
  void free_pinned(void* memory) override;
  void synchronize_event(Event event) override;
  void synchronize(Stream stream) override;
  void synchronize() override;
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override;

 private:
  void* note(void* memory, std::size_t bytes);
  bool known(const void* address) const;

  std::map<const std::byte*, std::size_t, std::greater<>> known_;  // bytes, by start
  std::int64_t synchronizations_ = 0, event_waits_ = 0;
};

}  // namespace plumb::device::decode
