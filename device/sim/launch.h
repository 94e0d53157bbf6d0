// SPDX-License-Identifier: Apache-2.0
//
// The seam between the simulated stream (which decides when a kernel runs) and the simulated grid
// (which runs it): a kernel call with its arguments frozen by value, and the conditions it meets.
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

// Words that a call keeps until it runs.
struct KeptWords {
  std::vector<std::uintptr_t> addresses;
  // Of structures: addresses, numbers, and what a compiler has left between members, which may be
  // half of some address.
  std::vector<std::uintptr_t> guesses;

  void add_words(const void* begin, std::size_t bytes, bool certain);
};

struct KernelCall {
  std::string name;
  LaunchShape shape;
  // Runs the kernel body for the current simulated thread, with the frozen arguments.
  void (*invoke)(const void* arguments) = nullptr;
  std::shared_ptr<const void> arguments;
  std::size_t argument_bytes = 0;  // of *arguments, which the kernel may read
  void (*keep)(const void* arguments, KeptWords& kept) = nullptr;
};

// The simulated stream's side: queues the call, and answers for the stream's device.
void enqueue(Stream stream, KernelCall call);
const Properties& stream_properties(Stream stream);

// Answers of the device's memory to the checked build of the kernels.
class MemoryMap {
 public:
  struct Region {
    std::uintptr_t begin = 0, end = 0;  // of the allocation, guard zones excluded
    const std::string* label = nullptr;
    bool freed = false;
    bool sparse = false;
  };
  virtual ~MemoryMap() = default;
  // The region (live or freed) that holds the address, guard zones included as the region they
  // guard; nullptr if no allocation of this device was ever there.
  virtual const Region* find(std::uintptr_t address) const = 0;
};

// Throws launch_limits if the platform does not allow the call's shape. Static shared memory is
// known, and checked, only when the kernel runs.
void check_limits(const KernelCall& call, const Properties& properties);

// Runs one kernel to its end, every block and every thread, on the calling host thread. Throws
// DeviceError for whatever a kernel may not do; the message names kernel, block, threads and lines.
void run_grid(const KernelCall& call, const Properties& properties, const Conditions& conditions,
              const MemoryMap& memory);

// For a fault that a signal handler found while run_grid was running on this thread. Before control
// leaves the simulated thread by a long jump: tells the sanitizers. After it: drops every simulated
// stack and returns who was running, "block (3, 0) thread 17 (wave 0, lane 17)"; empty: nobody was.
bool is_below_simulated_stack(std::uintptr_t address);  // of the running simulated thread
void begin_abandoning_grid();
std::string finish_abandoning_grid();

// Every barrier (block_sync, wave_sync) that kernels of this process passed since the last reset:
// "mhc_pre.cu:120 mhc_pre_split", sorted. Each string, or its first word, can be given to
// Conditions::disabled_barriers. Safe to call from any thread.
std::vector<std::string> executed_barriers();
void reset_executed_barriers();

}  // namespace plumb::device::sim
