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

namespace plumb::device::sim {

struct LaunchShape {
  std::int64_t grid_x = 1, grid_y = 1;
  int block = 1;
  std::size_t dynamic_shared_bytes = 0;
};

struct KernelCall {
  std::string name;
  LaunchShape shape;
  // Runs the kernel body for the current simulated thread, with the frozen arguments.
  void (*invoke)(const void* arguments) = nullptr;
  std::shared_ptr<const void> arguments;
  std::size_t argument_bytes = 0;  // of *arguments, which the kernel may read
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

// Runs one kernel to its end, every block and every thread, on the calling host thread. Throws
// DeviceError for whatever a kernel may not do; the message names kernel, block, threads and lines.
void run_grid(const KernelCall& call, const Properties& properties, const Conditions& conditions,
              const MemoryMap& memory);

// The other direction, for PLUMB_LAUNCH: hands a kernel call to the device that the stream belongs
// to, and asks that device what it is. Throws DeviceError as Device's own calls do.
void enqueue(Stream stream, KernelCall call);
const Properties& stream_properties(Stream stream);

// Every barrier (block_sync, wave_sync) that kernels of this process passed since the last reset:
// "mhc_pre.cu:120 mhc_pre_split", sorted. Each string, or its first word, can be given to
// Conditions::disabled_barriers. Safe to call from any thread.
std::vector<std::string> executed_barriers();
void reset_executed_barriers();

}  // namespace plumb::device::sim
