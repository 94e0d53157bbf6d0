// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/commands.h"

namespace plumb::tools {

// plumb judge A --against B. Returns the exit code. Throws for what ends with 2.
int against_command(const JudgeArguments& arguments, int jobs);

// A worker process of that. Nothing: the role is another one's.
std::optional<int> serve_against(const std::string& role);

}  // namespace plumb::tools
