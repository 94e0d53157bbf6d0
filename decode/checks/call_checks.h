// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Checks every call of the step in the twin (the engine with a recorder in its graphs, watch.h).
// The call must be right on the bytes that it read and equal the same call of the eager engine. Its
// live rows must not depend on the contents of padding. Notes the writers of all outputs. Returns
// the number of calls.
std::int64_t check_calls(WatchedStep& step);

}  // namespace plumb::cases
