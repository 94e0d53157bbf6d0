// SPDX-License-Identifier: Apache-2.0
//
// Times the launches of one case and judges their outputs.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::tools {

struct TimedLaunches {
  std::string skipped;          // reason if op or shape is not supported
  std::string wrong;            // first line of the verdict; "": the outputs are right
  std::vector<double> seconds;  // per launch, one number per repetition; empty if wrong
};

// On a real device: events around replays of a graph. On a simulated one: host time of a launch and
// the wait for it.
TimedLaunches time_launches(const cases::Case& which, const cases::RunOptions& options);

}  // namespace plumb::tools
