// SPDX-License-Identifier: Apache-2.0
#include "tools/lane.h"

#include <fmt/format.h>

#include "cases/tables/point_text.h"
#include "diagnosis/case_diagnosis.h"
#include "faults/decode/decode_step_run.h"
#include "tools/golden/golden_check.h"
#include "tools/wire.h"

namespace plumb::tools {

namespace {

// Of this process, so that a worker reads each file once. Nothing where a run has none to compare
// with: other inputs, other kernels, or no store.
GoldenChecker* checker_of(const RunArguments& arguments) {
  const std::string folder = golden_folder(arguments);
  if (folder.empty()) return nullptr;
  static GoldenChecker checker(folder);
  return &checker;
}

void compare_with_golden(const Task& task, const RunArguments& arguments,
                         const cases::RunOptions& options, Finished& finished) {
  if (finished.result.outcome != cases::Outcome::passed) return;
  GoldenChecker* checker = checker_of(arguments);
  if (!checker) return;
  finished.golden = checker->check(*task.which, options, false);
  if (finished.golden.agreement != golden::Agreement::failed) return;
  finished.result.outcome = cases::Outcome::failed;
  finished.result.failures.push_back({"the launch of its golden", finished.golden.lines, {}});
}

std::string reproduce_line(const Task& task, const RunArguments& arguments) {
  return fmt::format("plumb run --case {} --platform {}{}", task.which->id(), task.platform,
                     repeated_options(arguments.selection, arguments.seed));
}

// A finished task but for its result.
Finished name_task(const Task& task, const RunArguments& arguments) {
  Finished finished;
  finished.op = task.which->op->name;
  finished.row = task.which->row.name;
  finished.scenario = task.which->scenario->name;
  finished.reproduce = reproduce_line(task, arguments);
  return finished;
}

// A case that was not run in this process, or not to its end.
Finished without_result(const Task& task, const RunArguments& arguments, cases::Outcome outcome) {
  Finished finished = name_task(task, arguments);
  finished.result.id = task.which->id();
  finished.result.platform = task.platform;
  finished.result.outcome = outcome;
  return finished;
}

// What is known of a case whose process did not live to tell.
Finished died(const Task& task, const RunArguments& arguments, const Death& death) {
  Finished finished = without_result(task, arguments, cases::Outcome::failed);
  finished.result.failures.push_back(
      {"the case as a whole",
       {fmt::format("{}: {}", death.timed_out ? "timeout" : "crash", death.why)},
       {}});
  return finished;
}

}  // namespace

std::string golden_folder(const RunArguments& arguments) {
  const Selection& selection = arguments.selection;
  const bool other_inputs = arguments.seed != 0 || !selection.settings.empty() ||
                            !selection.case_files.empty() || !selection.point.empty();
  if (other_inputs || !selection.plugin.empty()) return "";
  return arguments.goldens ? *arguments.goldens : own_goldens();
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Finished run_task(const Task& task, const RunArguments& arguments, cases::Tier tier,
                  bool diagnosed) {
  cases::RunOptions options;
  options.platform = task.platform;
  options.tier = tier;
  options.seed = arguments.seed;
  if (!arguments.selection.point.empty()) {
    options.point = cases::point_from(arguments.selection.point);
  }
  const std::string& plugin = arguments.selection.plugin;
  if (!plugin.empty()) options = with_plugin(std::move(options), loaded_plugin(plugin));
  const auto start = std::chrono::steady_clock::now();
  Finished finished = name_task(task, arguments);
  try {
    if (cases::is_decode_step(*task.which)) {
      finished.result = cases::run_decode_step(*task.which, options, diagnosed);
    } else {
      finished.result = cases::run_case(*task.which, options);
      compare_with_golden(task, arguments, options, finished);
    }
  } catch (const cases::BadRow& error) {
    throw cases::BadRow(fmt::format("{}: {}", task.which->id(), error.what()));
  }
  finished.seconds = seconds_since(start);
  const bool one_op = !cases::is_decode_step(*task.which);
  if (diagnosed && one_op && finished.result.outcome == cases::Outcome::failed) {
    finished.result.diagnosis = text_of(diagnose(*task.which, finished.result, options));
  }
  return finished;
}

Finished Lane::run(std::size_t i) {
  const std::optional<PluginInfo>& plugin = arguments_.plugin;
  if (plugin && !plugin->offers(tasks_[i].which->op->name)) {
    Finished finished = without_result(tasks_[i], arguments_, cases::Outcome::skipped);
    finished.result.reason = lacks_the_op(*plugin);
    return finished;
  }
  if (arguments_.in_process) return run_task(tasks_[i], arguments_, tier_, arguments_.diagnose);
  const auto start = std::chrono::steady_clock::now();
  auto answer = worker_.run(i);
  // A wrong kernel that is tried as a hypothesis may be what has crashed it.
  const auto* crash = std::get_if<Death>(&answer);
  if (crash != nullptr && !crash->timed_out) answer = worker_.run(i + tasks_.size());
  if (const auto* death = std::get_if<Death>(&answer)) {
    Finished finished = died(tasks_[i], arguments_, *death);
    finished.seconds = seconds_since(start);
    return finished;
  }
  Finished finished = finished_from(std::get<Bytes>(answer));
  const bool failed = finished.result.outcome == cases::Outcome::failed;
  if (failed && is_real(tasks_[i].platform)) worker_.retire();
  return finished;
}

}  // namespace plumb::tools
