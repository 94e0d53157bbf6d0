// SPDX-License-Identifier: Apache-2.0
#include "tools/run/last_failed.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "tools/run/failure_groups.h"
#include "tools/run/report_reader.h"

namespace plumb::tools {

namespace {

using CaseOnPlatform = std::pair<std::string, std::string>;

std::set<CaseOnPlatform> failed_in(const std::string& path) {
  std::set<CaseOnPlatform> failed;
  for (const Finished& one : read_run_report(path).all) {
    if (is_failure(one)) failed.emplace(one.result.id, one.result.platform);
  }
  return failed;
}

}  // namespace

std::vector<Task> last_failed(const std::vector<Task>& tasks, const std::string& path) {
  if (path.empty()) throw UsageError("--last-failed reads the report that --json names, not \"\"");
  const std::set<CaseOnPlatform> failed = failed_in(path);
  std::vector<Task> left;
  for (const Task& task : tasks) {
    if (failed.contains({task.which->id(), task.platform})) left.push_back(task);
  }
  if (left.empty()) {
    throw UsageError(fmt::format("--last-failed: no selected case failed in {}", path));
  }
  return left;
}

}  // namespace plumb::tools
