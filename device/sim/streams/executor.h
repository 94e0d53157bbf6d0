// SPDX-License-Identifier: Apache-2.0
//
// Runs operations of a simulated device on the calling host thread, whole or in pieces, whenever
// the queues decide that their time has come. Addresses are checked here again: memory may have
// been freed meanwhile.
#pragma once

#include <atomic>
#include <optional>
#include <thread>

#include "device/sim/grid/grid.h"
#include "device/sim/memory/memory.h"
#include "device/sim/memory/page_fault.h"
#include "device/sim/streams/operation.h"

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
  void run(Operation operation);

  // True in what an operation calls (a host function, say), which may not use the device.
  bool is_running_here() const { return running_ == std::this_thread::get_id(); }

  // Throws unless each side of the copy lies in pageable memory or in one live allocation.
  void check(const MemoryCopy& copy) const;
  void check(const MemoryFill& fill) const;

 private:
  void check_side(std::string_view call, const void* begin, std::size_t bytes) const;
  friend class OperationProgress;
  // Runs a piece of an operation that is no replay; `grid` keeps what is left of a kernel. True:
  // the operation is over.
  bool advance(const Operation& operation, std::optional<Grid>& grid);
  bool perform(const Operation& operation, std::optional<Grid>& grid);
  [[noreturn]] void report(const PageFault& fault, const Operation& operation) const;

  const Properties& properties_;
  const Conditions& conditions_;
  Memory& memory_;
  Memory& pinned_;
  const ReachableMemory reachable_;
  std::atomic<std::thread::id> running_;
};

// An operation on its way.
class OperationProgress {
 public:
  OperationProgress(Executor& executor, Operation operation);
  // Runs a piece. True: that was the last one. Throws as Executor::run does.
  bool advance();

 private:
  Executor& executor_;
  const Operation operation_;
  std::vector<int> order_;  // of a replay's nodes; one element for any other operation
  std::size_t next_ = 0;    // in order_
  std::optional<Grid> grid_;
};

// The order in which a replay runs the nodes. Early: as recorded. Otherwise: of the nodes that may
// run, always the one recorded last, so that a missing edge between branches shows.
std::vector<int> replay_order(const GraphData& graph, Policy policy);

}  // namespace plumb::device::sim
