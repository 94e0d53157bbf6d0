// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Checks that norms, mixes, rotations, cache writers and routers of the step are called once each,
// in the order of the model, each with its own weights   [7.7, hazards J4]. No other check sees an
// op that runs twice or with another op's weights, because each of its calls is right on its
// inputs.
void check_order(WatchedStep& step);

}  // namespace plumb::cases
