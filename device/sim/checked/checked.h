// SPDX-License-Identifier: Apache-2.0
//
// Memory checking of one launch. checked_callbacks.cpp passes each memory access of an instrumented
// kernel to Checker::access. Accesses to the thread's own stack are ignored. Any other access ends
// the run if it is out of bounds, hits freed memory or uninitialised shared memory, or races with
// another access. Two threads that write the same value to one address race, too.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "device/sim/checked/checked_clock.h"
#include "device/sim/checked/checked_shadow.h"
#include "device/sim/launch.h"

namespace plumb::device::sim {

class Block;

class Checker {
 public:
  explicit Checker(Block& block) : block_(block) {}

  void start_kernel(const KernelCall& call, const MemoryMap& memory, int wave_size);
  void start_block(std::int64_t x, std::int64_t y) { clock_.start_block(x, y); }
  void pass_block_sync() { clock_.pass_block_sync(); }
  void pass_wave_operation(WaveKind kind, int wave, std::uint64_t lanes);
  void access(const Access& access);

 private:
  using Region = MemoryMap::Region;
  bool is_launch_data(const Access& access) const;
  inline void access_shared(const Access& access);
  inline void access_global(const Access& access);
  inline const Region* find_region(std::uintptr_t address);
  inline void check_shadow(const Access& access, std::uint32_t floor, bool needs_write);
  [[noreturn]] void fail(const Access& access, const AccessVerdict& finding);
  // Separate functions build the messages: fail() drops its caller's stack without running
  // destructors.
  std::string describe(const Access& access, const AccessVerdict& finding);
  std::string describe_other(const AccessVerdict& finding) const;
  std::string describe_shared_bounds(const Access& access) const;
  std::string describe_global_bounds(const Access& access, const Region* region) const;

  Block& block_;
  const KernelCall* call_ = nullptr;
  const MemoryMap* memory_ = nullptr;
  Clock clock_;
  Shadow shadow_;
  // The regions that were found last, with their bounds.
  struct RecentRegion {
    std::uintptr_t begin = 0, bytes = 0;
    const Region* region = nullptr;
  };
  std::array<RecentRegion, 8> recent_{};
  std::size_t next_recent_ = 0;
};

// The checker of the launch that this host thread runs; nullptr unless that is a checked launch.
extern constinit thread_local Checker* checker;

// Whether an address is in the code or data that was loaded with the program and its libraries.
bool is_program_data(std::uintptr_t address);

}  // namespace plumb::device::sim
