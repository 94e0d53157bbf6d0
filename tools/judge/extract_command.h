// SPDX-License-Identifier: Apache-2.0
//
// plumb judge TRACE --extract CALL: writes one call of a trace as a recorded row in its own file.
#pragma once

#include <string>

#include "tools/commands.h"

namespace plumb::tools {

// `path`: the file with the call's step. Returns the exit code.
int extract_command(const JudgeArguments& arguments, const std::string& path, std::int64_t call);

}  // namespace plumb::tools
