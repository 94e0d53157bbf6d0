// SPDX-License-Identifier: Apache-2.0
//
// The plumb command. Exit codes (DESIGN.md, decision 3): 0 passed, 1 failed or untrusted, 2 cannot
// run; under --bisect "cannot say" is 125 and a usage error 128. Every error is one line on stderr.
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <string_view>
#include <system_error>

#include "cases/tables/case_file.h"
#include "cases/tables/row.h"
#include "device/device.h"
#include "device/plain_line.h"
#include "process/own_program.h"
#include "process/worker.h"
#include "tools/command_line.h"
#include "tools/output.h"
#include "tools/plugin.h"
#include "tools/selection.h"

namespace {

bool is_bisecting(int count, char** arguments) {
  return std::any_of(arguments + 1, arguments + count,
                     [](std::string_view argument) { return argument == "--bisect"; });
}

enum class Trouble { usage, cannot_say };

int complain(const std::string& what, Trouble trouble, bool bisecting) {
  // A full or closed stderr must not change the exit code.
  std::fputs(("plumb: " + plumb::device::plain_line(what) + "\n").c_str(), stderr);
  if (!bisecting) return 2;
  return trouble == Trouble::usage ? 128 : 125;
}

// The exit code for the exception in flight, after a line about it.
int answer_exception(bool bisecting) {
  using namespace plumb::tools;
  try {
    throw;
  } catch (const NotInThisBuild& error) {
    return complain(error.what(), Trouble::cannot_say, bisecting);
  } catch (const UsageError& error) {
    return complain(error.what(), Trouble::usage, bisecting);
  } catch (const plumb::process::NotAWorker& error) {
    return complain(error.what(), Trouble::usage, bisecting);
  } catch (const plumb::cases::BadRow& error) {
    return complain(error.what(), Trouble::usage, bisecting);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory", Trouble::cannot_say, bisecting);
  } catch (const std::system_error& error) {
    // fmt::print to standard output, or anything else that asks the system.
    const bool printing = std::ferror(stdout) != 0;
    return complain(
        printing ? "cannot write standard output: " + error.code().message() : error.what(),
        Trouble::cannot_say, bisecting);
  } catch (const std::exception& error) {
    return complain(error.what(), Trouble::cannot_say, bisecting);
  }
}

// A verdict takes hundreds of megabytes and gives them back. Kept by the process, they need not be
// mapped and cleared for the next one, which would take as long as filling them.
void keep_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace

int main(int count, char** arguments) {
  using namespace plumb::tools;
  occupy_standard_descriptors();
  keep_memory();
  // A file that reaches the limit of its size is an error of the write, and has a message.
  std::signal(SIGXFSZ, SIG_IGN);
  // Whoever started plumb may ignore it, and then no child's end could be awaited.
  std::signal(SIGCHLD, SIG_DFL);
  plumb::process::remember_command_line(count, arguments);
  const bool bisecting = is_bisecting(count, arguments);
  try {
    plumb::process::worker_role();  // throws if the environment is misleading
    if (const auto library = plugin_to_serve(count, arguments)) {
      serve_plugin_process(*library);
      std::_Exit(0);  // threads of the plug-in may still run
    }
    const int code = read_command_line(count, arguments)();
    finish_output();
    return code;
  } catch (...) {
    return answer_exception(bisecting);
  }
}
