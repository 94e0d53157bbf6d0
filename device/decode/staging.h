// SPDX-License-Identifier: Apache-2.0
//
// Pinned memory through which a step's inputs reach the device without a wait. A copy from pinned
// memory reads it when the copy runs, so an area is written again only when the copies of the step
// before last are over.
#pragma once

#include <cstddef>
#include <vector>

#include "device/decode/step_inputs.h"

namespace plumb::device::decode {

class Staging {
 public:
  Staging(Device& device, std::size_t bytes);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Enqueues all copies. Throws std::length_error for more than `bytes` of them.
  void send(const std::vector<Transfer>& transfers, Stream stream);

 private:
  struct Area {
    std::byte* memory = nullptr;
    Event copied = nullptr;
    bool used = false;
  };

  Device& device_;
  std::size_t bytes_;
  Area areas_[2];
  int next_ = 0;
};

}  // namespace plumb::device::decode
