// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// What a call of a graph was captured with is still allocated, to the same owner.
void check_addresses(const CallRecorder::CallRecording& call, WatchedStep& step);

}  // namespace plumb::cases
