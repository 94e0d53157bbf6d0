// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "decode/schedule/schedule.h"
#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Bytes of the live rows of the latest step's results: the target's, then the drafter's.
std::vector<std::byte> live_results(const WatchedEngine& watched);

// Results of the step in a newly created engine with the requests, blocks and caches of `old`. Its
// graphs, persistent buffers and states are new. `old` has not run the step yet.
std::vector<std::byte> fresh_results(const ScheduledStep& scheduled, const DecodeSetup& setup,
                                     const WatchedEngine& old);

// Copies requests and cache contents of an engine whose work has finished.
void adopt(const WatchedEngine& old, WatchedEngine& fresh);

}  // namespace plumb::cases
