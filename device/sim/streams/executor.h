// SPDX-License-Identifier: Apache-2.0
//
// Runs operations of a simulated device on the calling host thread, whole or in pieces, when the
// queues say so. Addresses are checked again here, because memory may have been freed since the
// call.
#pragma once

#include <atomic>
#include <optional>
#include <thread>

#include "device/sim/grid/grid.h"
#include "device/sim/memory/memory.h"
#include "device/sim/memory/page_fault.h"
#include "device/sim/streams/operation.h"

namespace plumb::device::sim {

// Memory that kernels may access: the device's own and, as on hardware, pinned host memory.
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

  // Throws DeviceError for anything that the operation may not do. The message names the operation.
  void run(Operation operation);

  // True inside functions that an operation calls (such as a host function): these may not use the
  // device.
  bool is_running_here() const { return running_ == std::this_thread::get_id(); }

  // Throws unless each side of the copy is in pageable memory or inside one live allocation.
  void check(const MemoryCopy& copy) const;
  void check(const MemoryFill& fill) const;

 private:
  void check_side(std::string_view call, const void* begin, std::size_t bytes) const;
  friend class OperationProgress;
  // Runs a piece of an operation that is not a replay. `grid` keeps an unfinished kernel. Returns
  // true when the operation is finished.
  bool advance(const Operation& operation, std::optional<Grid>& grid);
  bool perform(const Operation& operation, std::optional<Grid>& grid);
  [[noreturn]] void report(const PageFault& fault, const Operation& operation) const;
  DeviceError explain(const PageFault& fault, const std::string& who,
                      const Operation& operation) const;

  const Properties& properties_;
  const Conditions& conditions_;
  Memory& memory_;
  Memory& pinned_;
  const ReachableMemory reachable_;
  std::atomic<std::thread::id> running_;
};

// An operation in progress.
class OperationProgress {
 public:
  OperationProgress(Executor& executor, Operation operation);
  // Runs a piece. Returns true after the last one. Throws what Executor::run throws.
  bool advance();

 private:
  Executor& executor_;
  const Operation operation_;
  std::vector<int> order_;  // nodes of a replay; one element for any other operation
  std::size_t next_ = 0;    // position in order_ of the next node
  std::optional<Grid> grid_;
};

// The order in which a replay runs its nodes. Early: as recorded. Otherwise: always the runnable
// node that was recorded last, so that a missing edge between branches shows.
std::vector<int> replay_order(const GraphData& graph, Policy policy);

}  // namespace plumb::device::sim
