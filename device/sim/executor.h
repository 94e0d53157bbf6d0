// SPDX-License-Identifier: Apache-2.0
//
// Runs single operations of a simulated device on the calling host thread, whenever the queues
// decide that their time has come. Addresses are checked here again: memory may have been freed
// meanwhile.
#pragma once

#include "device/sim/memory.h"
#include "device/sim/operation.h"
#include "device/sim/page_fault.h"

namespace plumb::device::sim {

// What kernels may reach: the device's own memory and, as on hardware, pinned host memory.
class ReachableMemory : public MemoryMap {
 public:
  ReachableMemory(const Memory& memory, const Memory& pinned) : memory_(memory), pinned_(pinned) {}
  const Region* find(std::uintptr_t address) const override {
    const Region* region = memory_.find(address);
    return region != nullptr ? region : pinned_.find(address);
  }

 private:
  const Memory& memory_;
  const Memory& pinned_;
};

class Executor {
 public:
  Executor(const Properties& properties, const Conditions& conditions, Memory& memory,
           Memory& pinned)
      : properties_(properties),
        conditions_(conditions),
        memory_(memory),
        pinned_(pinned),
        reachable_(memory, pinned) {}

  // Throws DeviceError for what the operation may not do; the message names the operation.
  void run(const Operation& operation);

  // True while an operation runs: what it calls (a host function, say) may not use the device.
  bool busy() const { return busy_; }

  // Throws unless each side of the copy lies in pageable memory or in one live allocation.
  void check(const Copy& copy) const;
  void check(const Fill& fill) const;

 private:
  void check_side(std::string_view call, const void* begin, std::size_t bytes) const;
  void run_one(const Operation& operation);
  void perform(const Operation& operation);
  [[noreturn]] void report(const PageFault& fault, const Operation& operation) const;

  const Properties& properties_;
  const Conditions& conditions_;
  Memory& memory_;
  Memory& pinned_;
  const ReachableMemory reachable_;
  bool busy_ = false;
};

// The order in which a replay runs the nodes. Early: as recorded. Late: of the nodes that may run,
// always the one recorded last, so that a missing edge between branches shows.
std::vector<int> replay_order(const GraphData& graph, Policy policy);

}  // namespace plumb::device::sim
