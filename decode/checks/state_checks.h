// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Memory in which no call of the step writes is what it was before.
void check_state(WatchedStep& step);

}  // namespace plumb::cases
