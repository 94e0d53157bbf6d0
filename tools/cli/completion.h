// SPDX-License-Identifier: Apache-2.0
//
// Completion of plumb's words in a shell.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace plumb::tools {

// A script for "bash" or "zsh" (which reads bash's completions). It holds the commands and options
// of `app`, platforms and ops. Names of cases come from plumb list while the user types.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace plumb::tools
