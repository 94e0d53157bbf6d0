// SPDX-License-Identifier: Apache-2.0
//
// Another program, run to its end, with what it printed.
#pragma once

#include <string>

#include "process/child.h"

namespace plumb::process {

struct Ended : Ending {
  bool timed_out = false;
  double seconds = 0;
  std::string out, err;  // what it printed

  bool ok() const { return Ending::ok() && !timed_out; }
  // "ended with exit code 2", "no result after 5 s"
  std::string how() const;
};

struct RunLimits {
  double timeout = 0;   // seconds; 0: none
  bool always = false;  // also after an interrupt: it clears away
};

// Captures both outputs. Throws std::system_error if it cannot be started, Interrupted.
Ended run_to_end(Command command, RunLimits limits = {});

}  // namespace plumb::process
