// SPDX-License-Identifier: Apache-2.0
//
// Another program of a search, run to its end: builds, git, plumb itself. Ctrl-C ends it and all
// that it has started.
#pragma once

#include <string>
#include <vector>

#include "process/interrupts.h"
#include "process/run.h"
#include "process/temporary_folder.h"

namespace plumb::bisect {

using process::Ended;
using process::Interrupted;
using process::Interrupts;
using process::TemporaryFolder;

struct ProcessCommand {
  std::vector<std::string> words;        // the program and its arguments
  std::string folder = {};               // "": this process's
  std::vector<std::string> environment;  // NAME=value, beside this process's variables
  double timeout = 0;                    // seconds; 0: none
  bool always = false;                   // clears away: also after an interrupt
};

// Standard input is empty. Variables with which git tells its hooks where they are do not reach the
// program. Throws std::system_error if it cannot be started, Interrupted.
Ended run_process(const ProcessCommand& command);

}  // namespace plumb::bisect
