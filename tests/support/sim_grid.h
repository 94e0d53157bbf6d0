// SPDX-License-Identifier: Apache-2.0
//
// Helpers of the tests of the simulated grid: one allocation of integers, a launch of a kernel by
// its name, and the error in which the launch ends.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "device/sim/launch.h"

namespace plumb::device {

namespace kernels {
sim::KernelCall test_call(std::string_view kernel, const sim::LaunchShape& shape,
                          std::int32_t* data, int n);
}
namespace checked_kernels {
sim::KernelCall test_call(std::string_view kernel, const sim::LaunchShape& shape,
                          std::int32_t* data, int n);
}

namespace sim_test {

constexpr int kGuard = 64;  // integers on either side of the data

// A memory map with a single allocation, named "data".
class OneAllocation : public sim::MemoryMap {
 public:
  OneAllocation(std::vector<std::int32_t>& memory, bool freed) : memory_(memory) {
    region_.begin = reinterpret_cast<std::uintptr_t>(memory.data() + kGuard);
    region_.end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size() - kGuard);
    region_.label = &label_;
    region_.freed = freed;
  }
  const Region* find(std::uintptr_t address) const override {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
    return address - begin < memory_.size() * sizeof(std::int32_t) ? &region_ : nullptr;
  }

 private:
  std::vector<std::int32_t>& memory_;
  std::string label_ = "data";
  Region region_;
};

using TestCall = decltype(&kernels::test_call);
inline TestCall build(bool checked) {
#ifndef PLUMB_WITHOUT_CHECKED_KERNELS
  if (checked) return &checked_kernels::test_call;
#endif
  if (checked) throw std::logic_error("the checked kernels are not built");
  return &kernels::test_call;
}

// A launch to be run. Its data starts as zeros.
struct Launch {
  std::string kernel;
  sim::LaunchShape shape;
  int n = 0;  // the kernel's second argument
  int wave_size = 32;
  Order order = Order::forward;
  std::uint64_t seed = 1;
  bool checked = false;
  bool freed = false;
  std::vector<std::string> disabled_barriers = {};
  std::size_t elements = 4096;

  std::vector<std::int32_t> run() const {
    std::vector<std::int32_t> memory(elements + 2 * kGuard, 0);
    Properties properties;
    properties.wave_size = wave_size;
    Conditions conditions;
    conditions.order = order;
    conditions.seed = seed;
    conditions.checked = checked;
    conditions.disabled_barriers = disabled_barriers;
    const auto call = build(checked)(kernel, shape, memory.data() + kGuard, n);
    sim::run_grid(call, properties, conditions, OneAllocation(memory, freed));
    return {memory.begin() + kGuard, memory.end() - kGuard};
  }
};

// Finds the line of tests/must_fail/`file` that ends with this comment, and returns "waves.cu:52".
inline std::string line_of(const std::string& file, const std::string& comment) {
  std::ifstream source(std::string(PLUMB_MUST_FAIL_DIR) + "/" + file);
  std::string text;
  for (int line = 1; std::getline(source, text); ++line)
    if (text.ends_with("// " + comment)) return file + ":" + std::to_string(line);
  ADD_FAILURE() << "no line of " << file << " ends with // " << comment;
  return "none";
}

inline sim::LaunchShape blocks(std::int64_t count, int threads, std::size_t dynamic_bytes = 0) {
  return {count, 1, threads, dynamic_bytes};
}

// Fails unless the launch ends with this fault and a message that contains all of the parts.
inline void expect_fault(const Launch& launch, ErrorKind fault,
                         const std::vector<std::string>& parts) {
  try {
    launch.run();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.kind(), fault) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "'" << part << "' is not in: " << error.what();
    return;
  }
  ADD_FAILURE() << launch.kernel << " ran to its end";
}

}  // namespace sim_test

}  // namespace plumb::device
