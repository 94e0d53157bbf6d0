// SPDX-License-Identifier: Apache-2.0
//
// plumb run: every selected case on every selected platform, several side by side, reported in order.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

#include "cases/case_file.h"
#include "cases/run.h"
#include "reference/bound.h"
#include "tools/commands.h"
#include "tools/report.h"

namespace plumb::tools {

namespace {

struct RunArguments {
  Selection selection;
  std::uint64_t seed = 0;
  int jobs = 0;
  std::string json = "plumb.json", junit;
  bool bisect = false, quiet = false;
};

struct Task {
  const cases::Case* which;
  std::string platform;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string reproduce_line(const Task& task, const RunArguments& arguments) {
  return fmt::format("plumb run --case {} --platform {}{}", task.which->id(), task.platform,
                     repeated_options(arguments.selection, arguments.seed));
}

Finished run_task(const Task& task, const RunArguments& arguments, cases::Tier tier) {
  cases::RunOptions options;
  options.platform = task.platform;
  options.tier = tier;
  options.seed = arguments.seed;
  const auto start = std::chrono::steady_clock::now();
  Finished finished;
  finished.result = cases::run_case(*task.which, options);
  finished.op = task.which->op->name;
  finished.row = task.which->row.name;
  finished.scenario = task.which->scenario->name;
  finished.reproduce = reproduce_line(task, arguments);
  finished.seconds = seconds_since(start);
  return finished;
}

// Runs tasks on `jobs` threads and hands the results over in the order of the tasks.
class Runner {
 public:
  Runner(const std::vector<Task>& tasks, const RunArguments& arguments, cases::Tier tier)
      : tasks_(tasks), arguments_(arguments), tier_(tier), results_(tasks.size()) {}

  std::vector<Finished> run(int jobs) {
    reference::set_thread_count(jobs > 1 ? 1 : 0);
    std::vector<std::thread> workers;
    for (int i = 0; i < jobs; ++i) workers.emplace_back([this] { work(); });
    std::vector<Finished> all;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      all.push_back(wait_for(i));
      report(all.back(), i + 1);
    }
    for (std::thread& worker : workers) worker.join();
    if (progress_) fmt::print(stderr, "\r\033[K");
    if (failure_) std::rethrow_exception(failure_);
    return all;
  }

 private:
  void work() {
    for (std::size_t i = next_++; i < tasks_.size(); i = next_++) {
      Finished finished;
      try {
        finished = run_task(tasks_[i], arguments_, tier_);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      results_[i] = std::move(finished);
      ready_.notify_one();
    }
  }

  Finished wait_for(std::size_t i) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return results_[i].has_value(); });
    return std::move(*results_[i]);
  }

  void report(const Finished& finished, std::size_t done) {
    const std::string text = failure_text(finished, style_);
    if (progress_) fmt::print(stderr, "\r\033[K");
    if (!text.empty()) fmt::print("{}", text);
    if (!progress_) return;
    const double left = seconds_since(start_) / static_cast<double>(done) *
                        static_cast<double>(tasks_.size() - done);
    fmt::print(stderr, "[{}/{}] {:.0f} s left  {}", done, tasks_.size(), left, finished.result.id);
    std::fflush(stderr);
  }

  const std::vector<Task>& tasks_;
  const RunArguments& arguments_;
  cases::Tier tier_;
  std::vector<std::optional<Finished>> results_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable ready_;
  std::exception_ptr failure_;
  const Style style_ = style_of(STDOUT_FILENO);
  const bool progress_ = isatty(STDERR_FILENO) == 1;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

int code_for_bisect(int code) { return code == 2 ? 125 : code; }

// Under --bisect "untrusted" cannot say either; only a real failure is bad.
int bisect_code(const std::vector<Finished>& all) {
  const auto any = [&](cases::Outcome outcome) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Finished& f) { return f.result.outcome == outcome; });
  };
  if (any(cases::Outcome::failed)) return 1;
  if (any(cases::Outcome::untrusted) || any(cases::Outcome::skipped)) return 125;
  return code_for_bisect(exit_code(all));
}

// A bad row is reported before anything runs.
void validate(const Selected& selected) {
  for (const cases::Case& which : selected.cases) {
    for (const std::string& platform : selected.platforms) {
      if (!device::why_unavailable(platform).empty()) continue;
      which.op->make_problem(which.row, device::open_device(platform)->properties());
    }
  }
}

int run(const RunArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  Selected selected;
  try {
    selected = select(arguments.selection);
  } catch (const UsageError&) {
    // A case that an older or newer commit does not have is "cannot say", not a usage error.
    if (arguments.bisect && arguments.selection.tier.empty()) return 125;
    throw;
  }
  validate(selected);
  std::vector<Task> tasks;
  for (const cases::Case& which : selected.cases) {
    for (const std::string& platform : selected.platforms) tasks.push_back({&which, platform});
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int jobs = arguments.jobs > 0 ? arguments.jobs : cores;
  const std::vector<Finished> all = Runner(tasks, arguments, selected.tier).run(jobs);

  fmt::print("{}", summary_text(all, seconds_since(start), style_of(STDOUT_FILENO)));
  if (!arguments.quiet) fmt::print("{}", coverage_text(all));
  std::fflush(stdout);
  const std::string tier = arguments.selection.tier.empty() ? "default" : arguments.selection.tier;
  if (!arguments.json.empty()) write_file(arguments.json, to_json(all, tier, arguments.seed));
  if (!arguments.junit.empty()) write_file(arguments.junit, to_junit(all));
  return arguments.bisect ? bisect_code(all) : exit_code(all);
}

}  // namespace

void add_selection(CLI::App& command, Selection& selection) {
  command.add_option("--case", selection.patterns, "op, op/row, op/row/scenario; * and ? as in a shell")
      ->take_all();
  command.add_option("--op", selection.ops, "only this op")->take_all();
  command.add_option("--platform", selection.platforms, "default: every simulated one")->take_all();
  command.add_option("--tier", selection.tier, "smoke, default or full");
  command.add_option("--set", selection.settings, "name=value on every selected row")->take_all();
  command.add_option("--cases", selection.case_files, "TOML file whose rows replace an op's")->take_all();
}

void add_run(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run cases and judge them");
  add_selection(*command, arguments->selection);
  command->add_option("--seed", arguments->seed, "other inputs, the same on every platform");
  command->add_option("--jobs,-j", arguments->jobs, "cases side by side; default: cores")
      ->check(CLI::Range(1, 256));
  command->add_option("--json", arguments->json, "report for machines; \"\" writes none")
      ->capture_default_str();
  command->add_option("--junit", arguments->junit, "JUnit report");
  command->add_flag("--bisect", arguments->bisect, "exit codes for git bisect run");
  command->add_flag("--quiet,-q", arguments->quiet, "no coverage table");
  command->callback([&action, arguments] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace plumb::tools
