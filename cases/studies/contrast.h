// SPDX-License-Identifier: Apache-2.0
//
// What a failed case fails on and what it passes on: the case runs again at the point of its
// failure with one condition changed, and with other inputs. A report says what separates the runs
// that fail from those that pass, and the rows that fail from those that pass. A case that passes
// when it runs again fails intermittently.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

struct Contrast {
  std::string cause;               // what happened, where the runs prove it; else ""
  std::vector<std::string> lines;  // what fails and what passes
};

// Of a result of this case, with `options` as they were when it ran. Nothing where more than values
// is wrong, where several runners take part, and where one run takes more than 2 s of simulated
// work. No further run starts after 2 s, or after 20 times the time of the first run where that is
// longer, or after 20 s. The time is the larger one of the clock's and the simulated work.
Contrast contrast(const Case& which, const CaseResult& result, const RunOptions& options);

}  // namespace plumb::cases
