// SPDX-License-Identifier: Apache-2.0
//
// Runs another program to its end and captures its output.
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
  bool always = false;  // run even after an interrupt, for programs that clean up
};

// Runs `command` and captures stdout and stderr. Throws std::system_error if it cannot be started,
// and Interrupted.
Ended run_to_end(Command command, RunLimits limits = {});

}  // namespace plumb::process
