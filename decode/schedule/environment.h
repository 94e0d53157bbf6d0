// SPDX-License-Identifier: Apache-2.0
//
// What happens around the steps of an engine that is watched: requests come and go, padding runs,
// sizes are captured again, somebody else uses the memory that graphs do not.
#pragma once

#include "decode/schedule/schedule.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

void let_requests_change(const ScheduledStep& scheduled, device::decode::Engine& engine);
// As in another engine of the same setup, where they have changed already: what the caches of new
// requests hold is copied from there instead of computed once more.
void let_requests_change(const ScheduledStep& scheduled, const WatchedEngine& changed,
                         WatchedEngine& watched);

// Before a step of an engine whose graphs have to bear it.
void disturb(const ScheduledStep& scheduled, const Environment& environment,
             WatchedEngine& watched);

// A slow kernel goes on the stream of an engine that has room for one: some tenths of a
// second of a real device, longer than the host takes for a step beside other work. Throws
// device::DeviceError.
void delay(const WatchedEngine& watched);

}  // namespace plumb::cases
