// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/commands.h"

namespace plumb::tools {

// Runs plumb judge A --against B and returns the exit code. Exceptions end the command with code 2.
int against_command(const JudgeArguments& arguments, int jobs);

// Serves a worker process of that command. nullopt: the role belongs to another command.
std::optional<int> serve_against(const std::string& role);

}  // namespace plumb::tools
