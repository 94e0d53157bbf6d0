// SPDX-License-Identifier: Apache-2.0
//
// The interface between simulated streams, which decide when a kernel runs, and the simulated grid,
// which runs it: a kernel call whose arguments are frozen by value, and the conditions of its run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/launch_shape.h"

namespace plumb::device::sim {

using device::LaunchShape;

// Words in the arguments of a call that may be addresses.
struct KeptWords {
  std::vector<std::uintptr_t> addresses;
  // Words of structures: addresses, numbers, or padding between members, which may contain half of
  // an address.
  std::vector<std::uintptr_t> guesses;

  void add_words(const void* begin, std::size_t bytes, bool certain);
};

struct KernelCall {
  std::string name;
  LaunchShape shape;
  // Runs the kernel body for the current simulated thread, with the frozen arguments.
  void (*invoke)(const void* arguments) = nullptr;
  std::shared_ptr<const void> arguments;
  std::size_t argument_bytes = 0;  // size of *arguments, which the kernel may read
  void (*keep)(const void* arguments, KeptWords& kept) = nullptr;
};

// Implemented by the simulated stream: enqueues the call; properties of the stream's device.
void enqueue(Stream stream, KernelCall call);
const Properties& stream_properties(Stream stream);

// What checked kernels ask about the device's memory.
class MemoryMap {
 public:
  struct Region {
    std::uintptr_t begin = 0, end = 0;  // the allocation without its guard zones
    const std::string* label = nullptr;
    bool freed = false;
    bool sparse = false;
  };
  virtual ~MemoryMap() = default;
  // The live or freed region that contains the address, where guard zones count as part of their
  // region; nullptr if no allocation of this device ever contained it.
  virtual const Region* find(std::uintptr_t address) const = 0;
};

// Throws launch_limits if the platform does not allow the call's shape. Static shared memory is
// known, and checked, only when the kernel runs.
void check_limits(const KernelCall& call, const Properties& properties);

// Runs one kernel to its end, all blocks and threads, on the calling host thread. Throws
// DeviceError for anything that a kernel may not do. The message names kernel, block, threads and
// lines.
void run_grid(const KernelCall& call, const Properties& properties, const Conditions& conditions,
              const MemoryMap& memory);

// For a fault that a signal handler catches while run_grid runs on this thread.
// begin_abandoning_grid tells the sanitizers, before a long jump leaves the simulated thread.
// Behind the jump, finish_abandoning_grid drops all simulated stacks and returns the thread that
// was running, "block (3, 0) thread 17 (wave 0, lane 17)", or "" if none was.
bool is_below_simulated_stack(std::uintptr_t address);  // stack of the running simulated thread
void begin_abandoning_grid();
std::string finish_abandoning_grid();

// All barriers (block_sync, wave_sync) that kernels of this process passed since the last reset:
// "mhc_pre.cu:120 mhc_pre_split", sorted. Each string, or its first word, can be given to
// Conditions::disabled_barriers. Safe to call from any thread.
std::vector<std::string> executed_barriers();
void reset_executed_barriers();

}  // namespace plumb::device::sim
