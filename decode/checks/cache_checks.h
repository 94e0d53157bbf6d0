// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Blocks of the caches that changed belong to live tokens of the step.
void check_caches(WatchedStep& step);

}  // namespace plumb::cases
