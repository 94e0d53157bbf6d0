// SPDX-License-Identifier: Apache-2.0
//
// The plumb command. Exit codes (DESIGN.md, decision 3): 0 passed, 1 failed or untrusted, 2 cannot run;
// under --bisect "cannot say" is 125 and a usage error 128.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "cases/row.h"
#include "device/device.h"
#include "tools/commands.h"

namespace {

bool is_bisecting(int count, char** arguments) {
  return std::any_of(arguments + 1, arguments + count,
                     [](std::string_view argument) { return argument == "--bisect"; });
}

int complain(const char* what, bool bisecting) {
  fmt::print(stderr, "plumb: {}\n", what);
  return bisecting ? 128 : 2;
}

}  // namespace

int main(int count, char** arguments) {
  using namespace plumb::tools;
  CLI::App app{"plumb checks GPU kernels of DeepSeek-V4 / V3.2 inference against a CPU truth"};
  app.name("plumb");
  app.set_version_flag("--version", PLUMB_VERSION);
  app.require_subcommand(1);
  Action action;
  add_run(app, action);
  add_list(app, action);
  add_show(app, action);
  add_bench(app, action);

  const bool bisecting = is_bisecting(count, arguments);
  try {
    app.parse(count, arguments);
    return action();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return complain(error.what(), bisecting);
  } catch (const UsageError& error) {
    return complain(error.what(), bisecting);
  } catch (const plumb::cases::BadRow& error) {
    return complain(error.what(), bisecting);
  } catch (const std::exception& error) {
    complain(error.what(), false);
    return bisecting ? 125 : 2;
  }
}
