// SPDX-License-Identifier: Apache-2.0
//
// Launches of one case that are timed, and whose outputs are judged.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::tools {

struct TimedLaunches {
  std::string skipped;          // the op or the shape is not supported: why
  std::string wrong;            // the first line of the verdict; "": the outputs are right
  std::vector<double> seconds;  // per launch, one number per repetition; none if wrong
};

// On a real device: events around replays of a graph. On a simulated one: the clock of the host,
// around a launch and the wait for it.
TimedLaunches time_launches(const cases::Case& which, const cases::RunOptions& options);

}  // namespace plumb::tools
