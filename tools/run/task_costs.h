// SPDX-License-Identifier: Apache-2.0
//
// What the tasks of a run cost, as far as that can be told before they run.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/case_runner.h"

namespace plumb::tools {

// Nanoseconds, roughly, of each task. On every machine and for every platform those of the case on
// sim-sm90: shards have to be the same where a device is and where it is not.
std::vector<double> costs_of(const std::vector<Task>& tasks, cases::Tier tier, std::uint64_t seed);

}  // namespace plumb::tools
