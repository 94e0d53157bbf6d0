// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "decode/schedule/schedule.h"
#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Live rows that a step of an engine has returned: of the target, then of the drafter.
std::vector<std::byte> live_results(const WatchedEngine& watched);

// What an engine made anew makes of a step of an old one: the same requests, blocks and caches;
// graphs, persistent buffers and states of its own. The step has not been taken yet.
std::vector<std::byte> fresh_results(const ScheduledStep& scheduled, const DecodeSetup& setup,
                                     const WatchedEngine& old);

// The requests of an engine, and what its caches hold; its work is over.
void adopt(const WatchedEngine& old, WatchedEngine& fresh);

}  // namespace plumb::cases
