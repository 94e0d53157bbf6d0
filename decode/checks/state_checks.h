// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Checks that memory that no call of the step writes is unchanged.
void check_state(WatchedStep& step);

}  // namespace plumb::cases
