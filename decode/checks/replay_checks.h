// SPDX-License-Identifier: Apache-2.0
//
// That graphs do what the step is.
#pragma once

#include <optional>

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Some call of the twin's step has read or written: copies were poisoned before it.
bool check_ran(WatchedStep& step);
// The plain engine's results are those of the twin.
void check_twin(WatchedStep& step);
// The mode is the one that was asked for, and graphs launch what the eager step launches.
void check_path(WatchedStep& step);
// Nothing was captured in this step, and the host did not wait.
void check_cost(WatchedStep& step);
// Of V3.2: the plan was kept if it is the one of the step before, which `before` is; nothing has
// planned in between.
void check_kept_plan(const std::optional<device::decode::StepPlan>& before, WatchedStep& step);

}  // namespace plumb::cases
