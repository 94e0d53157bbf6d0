// SPDX-License-Identifier: Apache-2.0
#include "tools/run/resumed_run.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/run/report_reader.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using CaseOnPlatform = std::pair<std::string, std::string>;

// Verdicts of another program, plug-in, tier or seed do not belong to this run. Comparing commits
// is not enough, because a checkout may have changes.
void check_same(const RunReport& then, const RunReport& now, const std::string& path) {
  const auto require = [&](std::string_view what, const std::string& had, const std::string& has) {
    if (had == has) return;
    throw UsageError(fmt::format("--resume: {} has {} {}, and this run {}", path, what, had, has));
  };
  require("tier", then.tier, now.tier);
  require("seed", fmt::to_string(then.seed), fmt::to_string(now.seed));
  for (const char* name : {"program", "plugin_digest"}) {
    require(name, text_of(then.origin, name), text_of(now.origin, name));
  }
}

}  // namespace

ResumedRun resume(const std::vector<Task>& tasks, const std::string& path, const RunReport& now) {
  if (path.empty()) throw UsageError("--resume reads the report that --json names, not \"\"");
  RunReport then = read_run_report(path);
  if (!then.interruption) {
    throw UsageError(fmt::format("--resume: the run of {} is complete", path));
  }
  check_same(then, now, path);
  std::map<CaseOnPlatform, std::optional<Finished>> done;
  for (Finished& one : then.all) {
    CaseOnPlatform key{one.result.id, one.result.platform};
    done[std::move(key)] = std::move(one);
  }
  ResumedRun run;
  run.without_pictures = then.without_pictures;
  for (const Task& task : tasks) {
    const auto found = done.find({task.which->id(), task.platform});
    if (found == done.end()) {
      run.left.push_back(task);
      continue;
    }
    run.done.tasks.push_back(task);
    run.done.all.push_back(std::move(*found->second));
    done.erase(found);
  }
  if (!done.empty()) {
    throw UsageError(fmt::format(
        "--resume: {} has {} {}, which this command does not select; it is a report of: {}", path,
        done.begin()->first.first, done.begin()->first.second, text_of(then.origin, "command")));
  }
  return run;
}

TasksAndResults whole_run(const std::vector<Task>& tasks, TasksAndResults done,
                          const std::vector<Task>& left, std::vector<Finished> more) {
  std::map<std::pair<const cases::AnyCase*, std::string>, Finished*> results;
  const auto note = [&](const std::vector<Task>& of, std::vector<Finished>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) results[{of[i].which, of[i].platform}] = &all[i];
  };
  note(done.tasks, done.all);
  note(left, more);
  TasksAndResults whole;
  for (const Task& task : tasks) {
    const auto found = results.find({task.which, task.platform});
    if (found == results.end()) continue;
    whole.tasks.push_back(task);
    whole.all.push_back(std::move(*found->second));
  }
  return whole;
}

}  // namespace plumb::tools
