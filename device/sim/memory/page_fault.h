// SPDX-License-Identifier: Apache-2.0
//
// While a simulated operation runs, turns an access that the system refuses (closed page, null or
// wild pointer, an index gigabytes off) into a value that can be reported. Faults outside
// operations go to the handler that was installed before.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "device/sim/memory/memory.h"

namespace plumb::device::sim {

struct PageFault {
  enum class Place {
    memory,  // an address of an allocation of `memory`
    null,    // an address near zero
    wild,    // an address that no process can have
    stack,   // a simulated thread needs more stack than it has
    stray    // any other address
  };
  Place kind = Place::memory;
  std::uintptr_t address = 0;
  // Of a wild address: the repeated 16-bit filler or poison that a register holds as an address.
  std::uint16_t filler = 0;
  const Memory* memory = nullptr;
};

// Runs body(). If an access in it faults, body is abandoned at that point: its destructors do not
// run. The function given to on_abandoned is called then, on the same thread.
std::optional<PageFault> run_watching(const Memory& memory, const Memory& pinned,
                                      const std::function<void()>& body);
void on_abandoned(void (*abandoned)());

}  // namespace plumb::device::sim
