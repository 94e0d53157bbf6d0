// SPDX-License-Identifier: Apache-2.0
//
// Runs another program to its end: a build, git, or plumb itself. Ctrl-C ends the program and all
// its children.
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
  std::string folder = {};               // "": this process's folder
  std::vector<std::string> environment;  // NAME=value, in addition to this process's variables
  double timeout = 0;                    // seconds; 0: none
  bool always = false;                   // true: also runs after an interrupt, to clean up
};

// Standard input is empty. Variables that git sets for its hooks are removed. Throws
// std::system_error if the program cannot be started, Interrupted.
Ended run_process(const ProcessCommand& command);

}  // namespace plumb::bisect
