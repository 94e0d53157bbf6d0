// SPDX-License-Identifier: Apache-2.0
//
// Finds out under which conditions and in which rows a failed case fails, and where it passes. The
// case runs again at the failed point (the conditions of the failed run), each time with one
// condition changed, or with other inputs. The report says what separates failing from passing
// runs, and failing from passing rows. A case that passes when repeated unchanged fails
// intermittently.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

struct Contrast {
  std::string cause;               // what happened, if the runs prove it; otherwise ""
  std::vector<std::string> lines;  // what fails and what passes
};

// What separates failing from passing runs of a failed case. `options`: those with which `result`
// was obtained. Empty if more than values is wrong, if several runners take part, or if one run
// takes more than 2 s of simulated work. The time limit for starting another run is 2 s; if the
// first run was long it is 20 times that run, but 20 s at most. Time is the larger of clock time
// and simulated work.
Contrast contrast(const Case& which, const CaseResult& result, const RunOptions& options);

}  // namespace plumb::cases
