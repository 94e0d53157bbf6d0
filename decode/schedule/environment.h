// SPDX-License-Identifier: Apache-2.0
//
// Events around the steps of a watched engine: requests come and go, padding steps run, sizes are
// captured again, other users of the allocator overwrite free memory.
#pragma once

#include <cstdint>

#include "decode/engine/step_inputs.h"
#include "decode/schedule/schedule.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

void let_requests_change(const ScheduledStep& scheduled, device::decode::Engine& engine);
// As above, for an engine of the same setup as `changed`, where the requests have changed already:
// the caches of new requests are copied from there instead of being computed again.
void let_requests_change(const ScheduledStep& scheduled, const WatchedEngine& changed,
                         WatchedEngine& watched);

// Applies the disturbances before a step. The engine's graphs must not be affected by them.
void disturb(const ScheduledStep& scheduled, const Environment& environment,
             WatchedEngine& watched);

// Padding with tokens of its own in each step, counted from 0: a call that writes padding over the
// same entry in every step would leave it unchanged otherwise.
device::decode::Padding padding_of(std::int64_t step);

// Enqueues a slow kernel on the engine's stream, if the engine has a buffer for it. On a real
// device the kernel takes some tenths of a second, longer than the host needs to enqueue a step.
// Throws device::DeviceError.
void delay(const WatchedEngine& watched);

}  // namespace plumb::cases
