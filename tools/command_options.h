// SPDX-License-Identifier: Apache-2.0
//
// Options that several files add to commands. Only sources that know CLI11 include this.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/command_line.h"

namespace plumb::tools {

inline CLI::Option* add_repeatable(CLI::App& command, const char* name,
                                   std::vector<std::string>& values, const char* meaning) {
  // One value each time: what follows it is not a second one.
  return command.add_option(name, values, meaning)->take_all()->allow_extra_args(false);
}

// plumb bisect and its searches; plumb golden and what it does with a store.
void add_bisect(CLI::App& app, Action& action);
void add_golden(CLI::App& app, Action& action);

}  // namespace plumb::tools
