// SPDX-License-Identifier: Apache-2.0
//
// What the words of a command line ask for.
#pragma once

#include <functional>

namespace plumb::tools {

// Does it and returns an exit code (tools/commands.h).
using Action = std::function<int()>;

// Throws UsageError (tools/selection.h) for words that plumb does not know.
Action read_command_line(int count, const char* const* arguments);

}  // namespace plumb::tools
