// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Checks a call of a graph: all memory whose addresses were captured with the call must still be
// allocated to the same owner.
void check_addresses(const CallRecorder::CallRecording& call, WatchedStep& step);

}  // namespace plumb::cases
