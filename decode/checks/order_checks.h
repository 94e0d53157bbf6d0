// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Norms, mixes, rotations, cache writers and routers of the step are those of its model, each once
// and in their places   [7.7, hazards J4]. An op that is called twice is right both times.
void check_order(WatchedStep& step);

}  // namespace plumb::cases
