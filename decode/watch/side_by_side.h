// SPDX-License-Identifier: Apache-2.0
//
// Several engines side by side on one device, each with a stream, graphs, buffers and requests of
// its own: their steps are in flight together, and each has the results that it has alone.
#pragma once

#include "decode/watch/watch.h"

namespace plumb::cases {

// Engines and schedules differ in their seeds. Ends after the first step with findings.
WatchResult watch_side_by_side(const DecodeSetup& setup, const ScheduleShape& shape, int runners);

}  // namespace plumb::cases
