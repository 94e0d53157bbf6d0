// SPDX-License-Identifier: Apache-2.0
//
// Pinned memory through which a step's inputs reach the device without a wait: a mirror of their
// buffers, twice. A copy from pinned memory reads it when the copy runs, so a mirror is written
// again only when the copies of the step before last are over.
#pragma once

#include <cstddef>
#include <vector>

#include "decode/engine/memory.h"
#include "decode/engine/step_inputs.h"

namespace plumb::device::decode {

class Staging {
 public:
  // For transfers into this memory. `waits`: as it has to be; else a mirror is written while its
  // copies may be pending.
  Staging(Device& device, const EngineMemory& buffers, bool waits = true);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Enqueues all copies. Throws std::out_of_range for one that goes elsewhere.
  void send(const std::vector<Transfer>& transfers, Stream stream);

 private:
  struct Mirror {
    std::byte* memory = nullptr;
    Event copied = nullptr;
    bool used = false;
  };
  std::size_t place_of(const void* address) const;  // in a mirror

  Device& device_;
  const EngineMemory& buffers_;
  bool waits_;
  Mirror mirrors_[2];
  int next_ = 0;
};

}  // namespace plumb::device::decode
