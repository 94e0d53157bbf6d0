// SPDX-License-Identifier: Apache-2.0
//
// plumb judge TRACE --extract CALL: one call of a trace as a row in a file of its own.
#pragma once

#include <string>

#include "tools/commands.h"

namespace plumb::tools {

// `path`: the file of the call's step. Returns the exit code.
int extract_command(const JudgeArguments& arguments, const std::string& path, std::int64_t call);

}  // namespace plumb::tools
