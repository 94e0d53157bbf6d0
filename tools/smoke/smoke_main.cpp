// SPDX-License-Identifier: Apache-2.0
//
// plumb_smoke [CASE...]: a first verdict while the rest of plumb compiles. Exit codes as of plumb
// run.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <set>
#include <string>
#include <vector>

#include "process/terminal.h"
#include "tools/smoke/smoke.h"

namespace {

using plumb::tools::SmokeTask;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int run(const std::vector<std::string>& patterns) {
  const std::vector<SmokeTask> tasks = plumb::tools::smoke_tasks(patterns);
  if (tasks.empty()) {
    std::fputs("plumb_smoke: no case of the smoke tier has such a name\n", stderr);
    return 2;
  }
  plumb::process::StatusLine status;
  const auto start = std::chrono::steady_clock::now();
  const auto progress = [&](std::size_t done) {
    if (!status.is_shown() || done == 0) return;
    const double left =
        seconds_since(start) / static_cast<double>(done) * static_cast<double>(tasks.size() - done);
    status.show(fmt::format("smoke: {} of {} cases, {:.0f} s left", done, tasks.size(), left));
  };
  const plumb::tools::SmokeSummary summary = plumb::tools::run_smoke(tasks, {}, progress);
  status.clear();
  std::set<std::string> ops, platforms;
  for (const SmokeTask& task : tasks) {
    ops.emplace(task.which.op->name);
    platforms.insert(task.platform);
  }
  fmt::print(
      "{}smoke: {} passed, {} failed, {} skipped: cases of {} ops on {} simulated platforms, in "
      "{:.1f} s\n",
      summary.failures, summary.passed, summary.failed, summary.skipped, ops.size(),
      platforms.size(), seconds_since(start));
  if (summary.failed > 0) return 1;
  return summary.is_good() ? 0 : 2;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::fputs(fmt::format("plumb_smoke: {}\n", error.what()).c_str(), stderr);
    return 2;
  }
}
