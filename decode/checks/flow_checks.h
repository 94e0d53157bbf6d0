// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Buffers between ops are shared by all layers and by the chunks of a prefill. What a call reads
// there was written for its own layer and chunk: if the call that ought to have done that is left
// out, every op is right on what another layer has left. A finding names that op. A call
// uses weights and caches of its own layer only. Inputs of one call that are rows of all tokens
// begin with the same token. Ops that join layers read the newest streams. A call that takes
// equally many rows of each request takes the requests that decode. A cache has one fp8 dialect.
void check_flow(const CallRecorder::CallRecording& call, WatchedStep& step);

}  // namespace plumb::cases
