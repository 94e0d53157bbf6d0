// SPDX-License-Identifier: Apache-2.0
//
// Estimates the costs of the tasks of a run before they run.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/case_runner.h"

namespace plumb::tools {

// Rough cost of each task in nanoseconds. For every platform it is the cost on sim-sm90, so that
// shards are the same on machines with and without a device.
std::vector<double> costs_of(const std::vector<Task>& tasks, cases::Tier tier, std::uint64_t seed);

}  // namespace plumb::tools
