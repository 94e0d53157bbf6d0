// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of plumb. Each adds itself to the command line and runs, returning an exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tools/selection.h"

namespace plumb::tools {

// What the chosen subcommand does; set while the command line is parsed.
using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_agreement(CLI::App& app, Action& action);

// --plugin
void add_plugin(CLI::App& command, Selection& selection);
// --case, --op, --platform, --tier, --set, --cases, --plugin
void add_selection(CLI::App& command, Selection& selection);
// An option that may be given several times.
void add_repeatable(CLI::App& command, const char* name, std::vector<std::string>& values,
                    const char* meaning);

}  // namespace plumb::tools
