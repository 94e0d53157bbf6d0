// SPDX-License-Identifier: Apache-2.0
//
// Pinned memory through which the inputs of a step reach the device without a wait: two mirrors of
// the input buffers, used in turn. A copy from pinned memory reads it when the copy runs, so a
// mirror is written again only after the copies of the step before last have run.
#pragma once

#include <cstddef>
#include <vector>

#include "decode/engine/memory.h"
#include "decode/engine/step_inputs.h"

namespace plumb::device::decode {

class Staging {
 public:
  // `buffers`: destination of the transfers. waits = false (a fault): a mirror is overwritten while
  // copies from it may still be pending.
  Staging(Device& device, const EngineMemory& buffers, bool waits = true);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Enqueues all copies. Throws std::out_of_range for a destination outside `buffers`.
  void send(const std::vector<Transfer>& transfers, Stream stream);

 private:
  struct Mirror {
    std::byte* memory = nullptr;
    Event copied = nullptr;
    bool used = false;
  };
  std::size_t place_of(const void* address) const;  // offset of a device address within a mirror

  Device& device_;
  const EngineMemory& buffers_;
  bool waits_;
  Mirror mirrors_[2];
  int next_ = 0;
};

}  // namespace plumb::device::decode
