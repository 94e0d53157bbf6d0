// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Every call of the twin's step: right on the bytes that it was given, the same as in the eager
// step, and in live rows the same whatever padding holds. Says who writes what; returns how many
// calls there are.
std::int64_t check_calls(WatchedStep& step);

}  // namespace plumb::cases
