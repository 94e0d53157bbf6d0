// SPDX-License-Identifier: Apache-2.0
//
// Turns the words of a command line into an action.
#pragma once

#include <functional>

namespace plumb::tools {

// Runs the command and returns an exit code (tools/commands.h).
using Action = std::function<int()>;

// Throws UsageError (tools/selection.h) for words that plumb does not know.
Action read_command_line(int count, const char* const* arguments);

}  // namespace plumb::tools
