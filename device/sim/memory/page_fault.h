// SPDX-License-Identifier: Apache-2.0
//
// Turns an access that the system refuses (closed page, null or wild pointer, an index that is off
// by gigabytes) while a simulated operation runs into a value that can be reported. Faults outside
// of operations go to the handler that was there before.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "device/sim/memory/memory.h"

namespace plumb::device::sim {

struct PageFault {
  enum class Place {
    memory,  // at `address` of `memory`
    null,    // near zero
    wild,    // no address that can exist
    stack,   // a simulated thread needs more stack than it has
    stray    // anywhere else
  };
  Place kind = Place::memory;
  std::uintptr_t address = 0;
  const Memory* memory = nullptr;
};

// Runs body(). If an access in it faults, abandons body where it is: no destructor in it runs.
// `abandoned` of on_abandoned is called then, on the same thread.
std::optional<PageFault> run_watching(const Memory& memory, const Memory& pinned,
                                      const std::function<void()>& body);
void on_abandoned(void (*abandoned)());

}  // namespace plumb::device::sim
