// SPDX-License-Identifier: Apache-2.0
//
// Counts the places where the host waits for a device. It notes each allocation: a copy to any
// other address goes to ordinary (pageable) host memory, and such a copy waits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "device/forwarding_device.h"

namespace plumb::device::decode {

class CountingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  // Waits for a stream or for the device, and copies to pageable host memory.
  std::int64_t synchronizations() const { return synchronizations_; }
  // Waits for an event of earlier work. Staging waits for the copies of the step before last, which
  // are usually over, so such a wait may take no time.
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

  std::map<const std::byte*, std::size_t, std::greater<>> known_;  // bytes by start
  std::int64_t synchronizations_ = 0, event_waits_ = 0;
};

}  // namespace plumb::device::decode
