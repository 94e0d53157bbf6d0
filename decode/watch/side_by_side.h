// SPDX-License-Identifier: Apache-2.0
//
// Runs several engines at once on one device. Each has its own stream, graphs, buffers and
// requests. Their steps are in flight together, and each must give the results that it gives alone.
#pragma once

#include "decode/watch/watch.h"

namespace plumb::cases {

// Engines and schedules differ in their seeds. Stops after the first step with findings.
WatchResult watch_side_by_side(const DecodeSetup& setup, const ScheduleShape& shape, int runners);

}  // namespace plumb::cases
