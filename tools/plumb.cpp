// SPDX-License-Identifier: Apache-2.0
//
// The plumb command. Exit codes (DESIGN.md, decision 3): 0 passed, 1 failed or untrusted, 2 cannot
// run. Under --bisect, "cannot say" is 125 and a usage error 128. Every error is one line on
// stderr.
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
#include "tools/cli/command_line.h"
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
  plumb::tools::print_error(plumb::device::plain_line(what));
  if (!bisecting) return 2;
  return trouble == Trouble::usage ? 128 : 125;
}

// Prints a line about the current exception and returns its exit code.
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
    // From an operation on standard output, or from another system call.
    const bool printing = std::ferror(stdout) != 0;
    return complain(
        printing ? "cannot write standard output: " + error.code().message() : error.what(),
        Trouble::cannot_say, bisecting);
  } catch (const std::exception& error) {
    return complain(error.what(), Trouble::cannot_say, bisecting);
  }
}

// A verdict allocates and frees hundreds of megabytes. If the process keeps this memory, the next
// verdict need not map and clear it again, which takes as long as filling it.
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
  // A reader that closes the pipe (| head) neither ends plumb nor changes its exit code.
  std::signal(SIGPIPE, SIG_IGN);
  // A file at its size limit then fails the write with a message, instead of a signal.
  std::signal(SIGXFSZ, SIG_IGN);
  // The parent may have set SIGCHLD to be ignored, and then no child could be waited for.
  std::signal(SIGCHLD, SIG_DFL);
  plumb::process::remember_command_line(count, arguments);
  const bool bisecting = is_bisecting(count, arguments);
  try {
    plumb::process::worker_role();  // throws if the worker's variables are inconsistent
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
