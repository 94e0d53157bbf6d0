// SPDX-License-Identifier: Apache-2.0
//
// Checks that a graph does the same work as the eager step. plain, twin and eager are engines that
// run the same step: with graphs, with recorded graphs, and eagerly (watch.h).
#pragma once

#include <optional>

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Checks that at least one call of the twin's step ran: the recorder's copies were marked before.
bool check_ran(WatchedStep& step);
// Checks that the results of the plain engine equal those of the twin.
void check_twin(WatchedStep& step);
// Checks that the graph mode is the requested one, and that graphs launch the kernels of the eager
// step.
void check_path(WatchedStep& step);
// Checks that the step captured nothing and that the host did not wait.
void check_cost(WatchedStep& step);
// V3.2: checks that the plan was kept if the step before (`before`) has the same plan. Nothing may
// have planned between the two steps.
void check_kept_plan(const std::optional<device::decode::StepPlan>& before, WatchedStep& step);

}  // namespace plumb::cases
