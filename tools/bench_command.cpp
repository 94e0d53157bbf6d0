// SPDX-License-Identifier: Apache-2.0
//
// plumb bench: ratios measured in one run. Never part of a test: these are times.
#include <fmt/format.h>

#include "tools/commands.h"

namespace plumb::tools {

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench", "what plumb itself costs, as ratios");
  command->callback([&action] { action = [] { return 0; }; });
}

}  // namespace plumb::tools
