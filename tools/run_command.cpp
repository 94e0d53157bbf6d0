// SPDX-License-Identifier: Apache-2.0
//
// plumb run: runs every selected case on every selected platform, several at a time, and reports in
// order.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <thread>

#include "cases/drivers/run.h"
#include "process/interrupts.h"
#include "reference/bound.h"
#include "tools/case_runner.h"
#include "tools/commands.h"
#include "tools/coverage.h"
#include "tools/html/report_page.h"
#include "tools/output.h"
#include "tools/run/devices.h"
#include "tools/run/failure_groups.h"
#include "tools/run/last_failed.h"
#include "tools/run/resumed_run.h"
#include "tools/run/run_checks.h"
#include "tools/run/run_origin.h"
#include "tools/run/run_reporter.h"
#include "tools/run/task_costs.h"
#include "tools/shard.h"

namespace plumb::tools {

namespace {

int code_for_bisect(int code) { return code == 2 ? 125 : code; }

// Exit code under --bisect: 1 (bad) only after a real failure. Untrusted or skipped cases give 125
// (cannot say).
int bisect_code(const std::vector<Finished>& all) {
  const auto any = [&](cases::Outcome outcome) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Finished& f) { return f.result.outcome == outcome; });
  };
  if (any(cases::Outcome::failed)) return 1;
  if (any(cases::Outcome::untrusted) || any(cases::Outcome::skipped)) return 125;
  return code_for_bisect(exit_code(all));
}

// Limit of jobs on a real device: it serves processes in turn, and the memory of all must fit.
int most_jobs_on(const std::string& platform) {
  constexpr int kMost = 8;
  constexpr std::size_t kOfOneCase = std::size_t{16} << 30;
  const auto fit = device::open_device(platform)->properties().memory_bytes / kOfOneCase;
  return std::clamp(static_cast<int>(fit), 1, kMost);
}

int jobs_of(const RunArguments& arguments, const SelectedAny& selected, int cores) {
  const int devices = std::max(1, static_cast<int>(arguments.worker_devices.size()));
  if (arguments.jobs > 0) return arguments.jobs;
  int jobs = cores;
  for (const std::string& platform : selected.platforms) {
    if (!is_real(platform)) continue;
    jobs = arguments.in_process ? 1 : std::min(jobs, devices * most_jobs_on(platform));
  }
  return jobs;
}

// 1 if a cell of the coverage table has too few cases, because cases may disappear without a
// failure.
int coverage_code(const std::vector<Finished>& all, int least) {
  const std::vector<std::string> thin = thin_coverage(all, least);
  for (const std::string& cell : thin) {
    print_error(fmt::format("fewer than {} cases with a compared element: {}", least, cell));
  }
  return thin.empty() ? 0 : 1;
}

// Reports an unusable library before the first case.
PluginInfo find_plugin(const RunArguments& arguments) {
  const std::string& path = arguments.selection.plugin;
  return arguments.in_process ? info_of(path, loaded_plugin(path))
                              : probe_plugin(path, arguments.timeout);
}

// With a plug-in, only decode steps and cases of the ops that it offers count as coverage.
std::vector<Finished> offered(const std::vector<Finished>& all, const RunArguments& arguments) {
  std::vector<Finished> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const Finished& finished) {
    return !arguments.plugin || finished.op == cases::kDecodeStep ||
           arguments.plugin->offers(finished.op);
  });
  return some;
}

// Results of a run, and the reason if it ended early.
struct RunRecord {
  std::vector<Finished> all;
  std::optional<Interruption> interruption;
};

// The report of this run without its cases.
RunReport report_of(const RunArguments& arguments, const SelectedAny& selected,
                    std::optional<ShareOfRun> share, RunOrigin origin) {
  if (!origin.empty()) add_kernels(selected.platforms, arguments.selection.plugin, origin);
  return {.tier = arguments.selection.tier.empty() ? "default" : arguments.selection.tier,
          .seed = arguments.seed,
          .plugin = arguments.plugin,
          .origin = std::move(origin),
          .share = std::move(share)};
}

void print_results(const std::vector<Task>& tasks, const RunRecord& run,
                   const RunArguments& arguments, double seconds) {
  put(summary_text(run.all, seconds, style_of(STDOUT_FILENO)));
  if (arguments.plugin) {
    put(fmt::format("plug-in {}: {} of {} ops; no checked kernels\n", arguments.plugin->text(),
                    arguments.plugin->ops.size(), cases::all_ops().size()));
  }
  if (!arguments.quiet) {
    put(coverage_text(offered(run.all, arguments)));
    put(features_text(run.all));
  }
  put(failure_summary(run.all, tasks, style_of(STDOUT_FILENO)));
  if (!run.interruption) return;
  const std::string line = text_of(*run.interruption, run.all.size());
  put(line + "\n");
  print_error(line);
}

void write_reports(const RunRecord& run, const RunArguments& arguments, RunReport report) {
  if (!arguments.json.empty() || !arguments.html.empty()) {
    report.all = run.all;
    report.interruption = run.interruption;
    const std::string json = to_json(report);
    if (!arguments.json.empty()) write_file(arguments.json, json);
    if (!arguments.html.empty()) {
      const std::string name = arguments.json.empty() ? "plumb run" : arguments.json;
      write_file(arguments.html, report_page({parse_report(name, json)}));
    }
  }
  if (!arguments.junit.empty()) write_file(arguments.junit, to_junit(run.all, run.interruption));
}

int code_of(const RunRecord& run, const RunArguments& arguments) {
  if (run.interruption) return run.interruption->exit_code;
  if (arguments.bisect) return bisect_code(run.all);
  if (proves_nothing(run.all)) return 1;
  return std::max(exit_code(run.all),
                  coverage_code(offered(run.all, arguments), arguments.least_coverage));
}

// Kinds of cases to select. With a plug-in, decode steps run only if they are named, because most
// of their calls use plumb's own kernels.
CaseKinds kinds_of(const Selection& selection) {
  const auto names_steps = [](const std::string& pattern) {
    return pattern.starts_with(cases::kDecodeStep);
  };
  const bool named = std::ranges::any_of(selection.patterns, names_steps) ||
                     std::ranges::any_of(selection.ops, names_steps);
  return selection.plugin.empty() || named ? CaseKinds::ops_and_decode_steps : CaseKinds::ops;
}

std::vector<Task> tasks_of(const SelectedAny& selected) {
  std::vector<Task> tasks;
  for (const cases::AnyCase& which : selected.cases) {
    for (const std::string& platform : selected.platforms) {
      tasks.push_back({&which, platform, tasks.size()});
    }
  }
  return tasks;
}

// Removes the tasks of other shards.
std::optional<ShareOfRun> take_share(std::vector<Task>& tasks, const SelectedAny& selected,
                                     const RunArguments& arguments) {
  std::optional<Shard> shard = shard_of_environment();
  if (!arguments.shard.empty()) shard = shard_of(arguments.shard);
  if (!shard) return std::nullopt;
  ShareOfRun share{shard->index, shard->total,
                   numbers_in(*shard, costs_of(tasks, selected.tier, arguments.seed))};
  std::vector<Task> own;
  for (const std::size_t number : share.numbers) own.push_back(tasks[number]);
  tasks = std::move(own);
  return share;
}

// Runs all tasks. After an error in the middle, the run ends with a report of the finished cases.
// An error before the first result is an error of the command.
void report_all(const std::vector<Task>& tasks, const RunArguments& arguments, int jobs,
                cases::Tier tier, RunRecord& run) {
  try {
    RunReporter(tasks, arguments, arguments.worker_devices).run(jobs, tier, run.all);
  } catch (const EnoughFailures& enough) {
    run.interruption = {enough.what(), arguments.bisect ? bisect_code(run.all) : 1, tasks.size()};
  } catch (const process::Interrupted&) {
    throw;
  } catch (const process::CannotStart&) {
    throw;
  } catch (const std::exception& error) {
    if (run.all.empty()) throw;
    run.interruption = {error.what(), arguments.bisect ? 125 : 2, tasks.size()};
  }
}

// A signal ends the run with reports of the finished cases.
RunRecord run_tasks(const std::vector<Task>& tasks, const SelectedAny& selected, int jobs,
                    RunArguments& arguments) {
  RunRecord run;
  try {
    if (!arguments.selection.plugin.empty()) arguments.plugin = find_plugin(arguments);
    check_rows(tasks);
    check_goldens(arguments, tasks);
    report_all(tasks, arguments, jobs, selected.tier, run);
  } catch (const process::Interrupted& interrupted) {
    const int signal = interrupted.signal();
    run.interruption = {"interrupted by " + process::name_of_signal(signal), 128 + signal,
                        tasks.size()};
  } catch (const process::CannotStart& error) {
    run.interruption = {error.what(), arguments.bisect ? 125 : 2, tasks.size()};
  }
  return run;
}

SelectedAny select_cases(const RunArguments& arguments) {
  SelectedAny selected = select_any(arguments.selection, kinds_of(arguments.selection));
  check_point(arguments.selection, selected);
  check_kernels(arguments.selection, selected);
  return selected;
}

// Sets the number of reference threads so that all processes together use every core. Returns the
// number of jobs.
int share_cores(const RunArguments& arguments, const SelectedAny& selected) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int jobs = jobs_of(arguments, selected, cores);
  reference::set_thread_count(std::max(1, cores / jobs));
  return jobs;
}

int serve_run(const RunArguments& arguments) {
  const SelectedAny selected = select_cases(arguments);
  share_cores(arguments, selected);
  return serve_cases(tasks_of(selected), arguments, selected.tier);
}

// The tasks of this command, split into finished and remaining ones.
struct PlannedRun {
  std::vector<Task> tasks;
  ResumedRun parts;
  RunReport report;  // report without cases
};
PlannedRun plan_run(const RunArguments& arguments, const SelectedAny& selected, RunOrigin origin) {
  PlannedRun plan{.tasks = tasks_of(selected)};
  if (arguments.last_failed) plan.tasks = last_failed(plan.tasks, arguments.json);
  std::optional<ShareOfRun> share = take_share(plan.tasks, selected, arguments);
  plan.report = report_of(arguments, selected, std::move(share), std::move(origin));
  plan.parts.left = plan.tasks;
  if (arguments.resume) plan.parts = resume(plan.tasks, arguments.json, plan.report);
  return plan;
}

// Runs the remaining tasks and completes the report. Returns the record and the tasks of its
// results.
std::pair<RunRecord, std::vector<Task>> carry_out(PlannedRun& plan, const SelectedAny& selected,
                                                  int jobs, RunArguments& arguments) {
  RunRecord run = run_tasks(plan.parts.left, selected, jobs, arguments);
  plan.report.plugin = arguments.plugin;
  plan.report.without_pictures = plan.parts.without_pictures;
  TasksAndResults whole =
      whole_run(plan.tasks, std::move(plan.parts.done), plan.parts.left, std::move(run.all));
  run.all = std::move(whole.all);
  if (run.interruption) run.interruption->cases = plan.tasks.size();
  return {std::move(run), std::move(whole.tasks)};
}

}  // namespace

int run_command(RunArguments arguments) {
  const auto start = std::chrono::steady_clock::now();
  arguments.seed = parse_seed(arguments.seed_text);
  if (process::is_worker()) return serve_run(arguments);
  const bool has_report = !arguments.json.empty() || !arguments.html.empty();
  RunOrigin origin = has_report ? origin_of_process() : RunOrigin();
  // A second signal ends plumb and its workers at once.
  const process::Interrupts interrupts(process::Interrupts::Second::ends_at_once);
  const SelectedAny selected = select_cases(arguments);
  PlannedRun plan = plan_run(arguments, selected, std::move(origin));
  if (!arguments.devices.empty()) {
    if (arguments.in_process) {
      throw UsageError("--devices is for workers, and --in-process has none");
    }
    arguments.worker_devices = devices_named(arguments.devices, selected.platforms);
  }
  const int jobs = share_cores(arguments, selected);
  check_reports(arguments);
  if (plan.report.share && plan.tasks.empty()) {
    put(fmt::format("no case in shard {} of {}\n", plan.report.share->index + 1,
                    plan.report.share->total));
    plan.report.code = 0;
    write_reports({}, arguments, plan.report);
    return 0;
  }
  const auto [run, tasks] = carry_out(plan, selected, jobs, arguments);
  const int code = code_of(run, arguments);
  // Reports are written first, because standard output may block in a pager.
  std::exception_ptr not_written;
  try {
    write_reports(run, arguments, std::move(plan.report));
  } catch (...) {
    not_written = std::current_exception();
  }
  print_results(tasks, run, arguments, seconds_since(start));
  if (not_written) std::rethrow_exception(not_written);
  check_dumps(run.all);
  return code;
}

}  // namespace plumb::tools
