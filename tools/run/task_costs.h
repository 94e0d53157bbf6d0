// SPDX-License-Identifier: Apache-2.0
//
// What the tasks of a run cost, as far as that can be told before they run.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/case_runner.h"

namespace plumb::tools {

// Nanoseconds, roughly, of each task. The same numbers on every machine: also the cost of a real
// device's cases is that of a simulated device with the same shapes.
std::vector<double> costs_of(const std::vector<Task>& tasks, cases::Tier tier, std::uint64_t seed);

}  // namespace plumb::tools
