// SPDX-License-Identifier: Apache-2.0
//
// Runs single operations of a simulated device on the calling host thread, whenever the queues
// decide that their time has come. Addresses are checked here again: memory may have been freed
// meanwhile.
#pragma once

#include "device/sim/memory.h"
#include "device/sim/operation.h"

namespace plumb::device::sim {

class Executor {
 public:
  Executor(const Properties& properties, const Conditions& conditions, Memory& memory,
           Memory& pinned)
      : properties_(properties), conditions_(conditions), memory_(memory), pinned_(pinned) {}

  // Throws DeviceError for what the operation may not do; the message names the operation.
  void run(const Operation& operation);

  // True while an operation runs: what it calls (a host function, say) may not use the device.
  bool busy() const { return busy_; }

  // Throws unless each side of the copy lies in pageable memory or in one live allocation.
  void check(const Copy& copy) const;
  void check(const Fill& fill) const;

 private:
  void run_one(const Operation& operation);
  void replay(const GraphData& graph);

  const Properties& properties_;
  const Conditions& conditions_;
  Memory& memory_;
  Memory& pinned_;
  bool busy_ = false;
};

// The order in which a replay runs the nodes. Early: as recorded. Late: of the nodes that may run,
// always the one recorded last, so that a missing edge between branches shows.
std::vector<int> replay_order(const GraphData& graph, Policy policy);

}  // namespace plumb::device::sim
