// SPDX-License-Identifier: Apache-2.0
#include "tools/case_runner.h"

#include <fmt/format.h>

#include "cases/drivers/captured_kernels.h"
#include "cases/drivers/point_text.h"
#include "cases/studies/contrast.h"
#include "cases/studies/right_under.h"
#include "device/remote/connection.h"
#include "diagnosis/case_diagnosis.h"
#include "diagnosis/decode_step_run.h"
#include "process/interrupts.h"
#include "process/own_program.h"
#include "tools/golden/golden_check.h"
#include "tools/golden/step_golden.h"
#include "tools/result_codec.h"
#include "tools/run/evidence_files.h"
#include "tools/run/failure_picture.h"

namespace plumb::tools {

namespace {

using process::Death;

// Whether rows are as in the case files and inputs have the default seed.
bool runs_as_listed(const RunArguments& arguments) {
  const Selection& selection = arguments.selection;
  return arguments.seed == 0 && selection.settings.empty() && selection.case_files.empty() &&
         selection.point.empty();
}

// One checker per process, so that a worker reads each file once. nullptr if the run is not
// compared with goldens (stored earlier results): it has changed inputs, or no store.
GoldenChecker* checker_of(const RunArguments& arguments) {
  const std::string folder = golden_folder(arguments);
  if (folder.empty()) return nullptr;
  static GoldenChecker checker(folder, regen_options(arguments.selection, arguments.goldens));
  return &checker;
}

// Fails a case whose golden says so. `context`: what was compared.
void fail_by_golden(const char* context, Finished& finished) {
  if (finished.golden.agreement != golden::Agreement::failed) return;
  finished.result.outcome = cases::Outcome::failed;
  finished.result.failures.push_back({context, finished.golden.lines, {}, {}});
}

// Runs a case of an op and compares it with its golden. The first launch of the case with real
// values (not the exact or adversarial fill) is usually the launch that the golden records. If its
// bits equal the golden's, no second launch is needed.
void run_beside_golden(const cases::Case& which, const RunArguments& arguments,
                       cases::RunOptions options, Finished& finished) {
  GoldenChecker* const checker = golden::wants_golden(which) ? checker_of(arguments) : nullptr;
  std::optional<golden::GoldenComparison> launched;
  if (checker != nullptr && checker->store().has(options.platform)) {
    options.on_real_launch = [&](const cases::Problem& problem, const cases::Launched& launch) {
      launched = checker->check_launched(which, options, golden::golden_of(which, problem, launch));
    };
  }
  finished.result = cases::run_case(which, options);
  options.on_real_launch = {};
  if (checker == nullptr || finished.result.outcome != cases::Outcome::passed) return;
  finished.golden = launched ? *launched : checker->check(which, options, false);
  fail_by_golden("the launch that the golden stores", finished);
}

std::string reproduce_line(const Task& task, const RunArguments& arguments) {
  return fmt::format("plumb run --case {} --platform {}{}", task.which->id(), task.platform,
                     repeated_options(arguments.selection, arguments.seed));
}

// A Finished with everything but the result.
Finished name_task(const Task& task, const RunArguments& arguments) {
  Finished finished;
  finished.op = task.which->op();
  finished.row = task.which->row().name;
  finished.trivial = !task.which->row().trivial.empty();
  finished.scenario = task.which->scenario();
  finished.reproduce = reproduce_line(task, arguments);
  return finished;
}

// The Finished of a case that did not run to its end in this process.
Finished without_result(const Task& task, const RunArguments& arguments, cases::Outcome outcome) {
  Finished finished = name_task(task, arguments);
  finished.result.id = task.which->id();
  finished.result.platform = task.platform;
  finished.result.outcome = outcome;
  return finished;
}

// The Finished of a case whose process gave no answer.
Finished died(const Task& task, const RunArguments& arguments, const Death& death) {
  Finished finished = without_result(task, arguments, cases::Outcome::failed);
  finished.result.failures.push_back(
      {death.timed_out ? "an unknown step: the worker process was ended"
                       : "an unknown step: the worker process died",
       {fmt::format("{}: {}", death.timed_out ? "timeout" : "crash", death.why)},
       {},
       death.timed_out ? "timeout" : "crash"});
  return finished;
}

// Name of a task in messages to workers.
std::string name_of(const Task& task) { return task.which->id() + " " + task.platform; }

CaseAnswer answer_to(const Task& task, const RunArguments& arguments, cases::Tier tier,
                     const CaseRequest& request) {
  try {
    return {run_task(task, arguments, tier, request.diagnosed), ""};
  } catch (const cases::BadRow& error) {
    return {{}, error.what()};
  } catch (const UsageError& error) {  // a plug-in that can no longer be loaded
    return {{}, error.what()};
  }
}

// Whether the run without diagnosis fails too. Then only the diagnosis, which starts after a
// failure, may have crashed.
bool explains_crash(const Finished& again) {
  return again.result.outcome == cases::Outcome::failed;
}

cases::RunOptions with_plugin_of(const RunArguments& arguments, cases::RunOptions options) {
  const std::string& plugin = arguments.selection.plugin;
  if (plugin.empty()) return options;
  if (arguments.in_process) return with_plugin(std::move(options), loaded_plugin(plugin));
  return with_plugin_process(std::move(options), plugin);
}

constexpr std::string_view kUnexpectedKernel = "unexpected_kernel";

// Checks that the kernels of --expect-kernel are in the captured graphs. Cases without a graph of
// the whole row run as usual.
void run_expecting_kernels(const cases::Case& which, const RunArguments& arguments,
                           const cases::RunOptions& options, Finished& finished) {
  using Mode = cases::Scenario::Mode;
  const std::vector<std::string>& expected = arguments.selection.kernels;
  const Mode mode = which.scenario->mode;
  if (expected.empty() || (mode != Mode::full_graph && mode != Mode::concurrent)) {
    return run_beside_golden(which, arguments, options, finished);
  }
  const cases::CapturedKernels captured;
  run_beside_golden(which, arguments, captured.noting(options), finished);
  cases::CaseResult& result = finished.result;
  if (result.outcome != cases::Outcome::passed && result.outcome != cases::Outcome::failed) return;
  const std::vector<std::string> lines = captured.unexpected(expected);
  if (lines.empty()) return;
  result.outcome = cases::Outcome::failed;
  result.failures.push_back({"captured kernels", lines, {}, std::string(kUnexpectedKernel)});
}

// Whether a missing kernel is the only failure. The values are right, so there is nothing to
// diagnose.
bool lacks_kernels_only(const cases::CaseResult& result) {
  return result.failures.size() == 1 && result.failures.front().kind == kUnexpectedKernel;
}

cases::StepCaseResult run_steps(const cases::StepCase& which, const RunArguments& arguments,
                                const cases::RunOptions& options, bool diagnosed) {
  const std::string& plugin = arguments.selection.plugin;
  if (plugin.empty()) return cases::run_decode_step(which, options, diagnosed);
  return cases::run_decode_step(
      which, options,
      arguments.in_process ? step_plugin(loaded_plugin(plugin)) : step_plugin_process(plugin));
}

void judge_steps(const cases::StepCase& which, const RunArguments& arguments,
                 cases::RunOptions options, bool diagnosed, Finished& finished) {
  const bool wanted = wants_golden(which) && arguments.selection.plugin.empty();
  GoldenChecker* const checker = wanted ? checker_of(arguments) : nullptr;
  options.digests_calls = checker != nullptr && checker->store().has(options.platform);
  cases::StepCaseResult one = run_steps(which, arguments, options, diagnosed);
  finished.result = std::move(one.result);
  finished.findings = std::move(one.findings);
  finished.features = std::move(one.features);
  if (checker == nullptr || finished.result.outcome != cases::Outcome::passed) return;
  const bool halved = options.digests_calls && one.digests.empty();
  if (halved) return;
  finished.golden = checker->check_steps(which, options, one.digests, false);
  fail_by_golden("the calls whose digests the golden stores", finished);
}

void judge_task(const Task& task, const RunArguments& arguments, const cases::RunOptions& options,
                bool diagnosed, Finished& finished) {
  if (const cases::StepCase* steps = task.which->of_steps()) {
    judge_steps(*steps, arguments, options, diagnosed, finished);
  } else {
    run_expecting_kernels(*task.which->of_op(), arguments, options, finished);
  }
  if (!arguments.selection.plugin.empty()) finished.notes = take_plugin_notes();
}

// Pictures of the wrong tensors. An exception here does not change the verdict.
std::vector<TensorPicture> pictures_of(const Task& task, const RunArguments& arguments,
                                       const cases::RunOptions& options,
                                       const cases::CaseResult& result) {
  const bool wanted = task.which->of_op() != nullptr && !arguments.bisect &&
                      result.outcome == cases::Outcome::failed;
  try {
    if (wanted) return failure_pictures(*task.which->of_op(), options, result);
  } catch (const std::exception&) {  // for instance too little memory for a second expectation
  }
  return {};
}

// Writes the tensors of a failed case. An error here does not change the verdict.
void dump(const cases::Case& which, const RunArguments& arguments, const cases::RunOptions& options,
          Finished& finished) {
  const cases::CaseResult& result = finished.result;
  if (!result.evidence) {
    finished.dump_trouble =
        "no wrong launch was kept: it has more than 64 MiB, or nothing returned";
    return;
  }
  try {
    write_evidence(arguments.dump, which, options, result, finished.reproduce);
    finished.dump = evidence_folder(arguments.dump, result);
  } catch (const std::exception& error) {
    finished.dump_trouble = error.what();
  }
}

}  // namespace

std::string golden_folder(const RunArguments& arguments) {
  const Selection& selection = arguments.selection;
  if (arguments.seed != 0 || !selection.settings.empty() || !selection.point.empty()) return "";
  if (arguments.goldens) return *arguments.goldens;
  return selection.plugin.empty() && selection.case_files.empty() ? own_goldens() : "";
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
  options.divides_schedules = tier == cases::Tier::standard && arguments.selection.plugin.empty() &&
                              runs_as_listed(arguments);
  if (!arguments.selection.point.empty()) {
    options.point = cases::point_from(arguments.selection.point);
  }
  const auto start = std::chrono::steady_clock::now();
  Finished finished = name_task(task, arguments);
  try {
    options = with_plugin_of(arguments, std::move(options));
    judge_task(task, arguments, options, diagnosed, finished);
  } catch (const device::remote::Died& death) {
    end_plugin_processes();
    finished = died(task, arguments, {death.what()});
    diagnosed = false;
  } catch (const cases::BadRow& error) {
    throw cases::BadRow(fmt::format("{}: {}", task.which->id(), error.what()));
  }
  finished.seconds = seconds_since(start);
  // After a crash inside a kernel, a plug-in may hold locks, and its interpreter may be broken.
  const bool lost =
      finished.result.outcome == cases::Outcome::failed && !cases::fails_by_values(finished.result);
  if (lost) end_plugin_processes();
  const cases::Case* one_op = task.which->of_op();
  finished.pictures = pictures_of(task, arguments, options, finished.result);
  if (!arguments.dump.empty() && one_op != nullptr &&
      finished.result.outcome == cases::Outcome::failed) {
    dump(*one_op, arguments, options, finished);
  }
  if (diagnosed && one_op != nullptr && finished.result.outcome == cases::Outcome::failed &&
      !lacks_kernels_only(finished.result)) {
    if (lost) options = with_plugin_of(arguments, std::move(options));
    find_declarations(*one_op, options, finished.result);
    cases::Contrast found = cases::contrast(*one_op, finished.result, options);
    finished.contrast = std::move(found.lines);
    finished.result.diagnosis = found.cause.empty()
                                    ? text_of(diagnose_case(*one_op, finished.result, options))
                                    : "looks like: " + found.cause;
  }
  if (lost) end_plugin_processes();
  return finished;
}

CaseRunner::CaseRunner(const std::vector<Task>& tasks, const RunArguments& arguments,
                       cases::Tier tier, std::vector<std::string> environment)
    : tasks_(tasks),
      arguments_(arguments),
      tier_(tier),
      worker_({.words = process::own_command_line(),
               .timeout = arguments.timeout,
               .environment = std::move(environment)}) {}

Finished CaseRunner::run(std::size_t i) {
  process::Interrupts::check();
  const std::optional<PluginInfo>& plugin = arguments_.plugin;
  if (plugin && tasks_[i].which->of_op() != nullptr && !plugin->offers(tasks_[i].which->op())) {
    Finished finished = without_result(tasks_[i], arguments_, cases::Outcome::skipped);
    finished.result.reason = lacks_the_op(*plugin);
    return finished;
  }
  if (arguments_.in_process) return run_task(tasks_[i], arguments_, tier_, arguments_.diagnose);
  Finished finished = run_in_worker(i);
  const bool failed = finished.result.outcome == cases::Outcome::failed;
  if ((failed || finished.result.lacked_memory) && is_real(tasks_[i].platform)) worker_.retire();
  return finished;
}

Finished CaseRunner::run_in_worker(std::size_t i) {
  const auto start = std::chrono::steady_clock::now();
  auto answer = process::ask<CaseAnswer>(worker_, tasks_[i].number, name_of(tasks_[i]),
                                         CaseRequest{arguments_.diagnose});
  if (const auto* death = std::get_if<Death>(&answer)) {
    Finished finished =
        arguments_.diagnose ? without_diagnosis(i, *death) : died(tasks_[i], arguments_, *death);
    finished.seconds = seconds_since(start);
    return finished;
  }
  auto& answered = std::get<CaseAnswer>(answer);
  if (!answered.finished) throw cases::BadRow(answered.unusable);
  return std::move(*answered.finished);
}

// Called after a crash or a timeout. A diagnosis runs the kernel again, and wrong kernels as
// hypotheses, and one of these runs may have crashed or timed out. Then the case also fails without
// a diagnosis, and that report says more. If it passes, the crash is the failure.
Finished CaseRunner::without_diagnosis(std::size_t i, const Death& crash) {
  auto again =
      process::ask<CaseAnswer>(worker_, tasks_[i].number, name_of(tasks_[i]), CaseRequest{false});
  Finished failure = died(tasks_[i], arguments_, crash);
  const auto* answered = std::get_if<CaseAnswer>(&again);
  if (answered == nullptr || !answered->finished) return failure;
  if (!explains_crash(*answered->finished)) {
    failure.result.failures.front().lines.emplace_back(
        "a second run of the case did not crash: the crash is intermittent");
    return failure;
  }
  failure = *answered->finished;
  failure.result.diagnosis = "not diagnosed: " + crash.why;
  return failure;
}

int serve_cases(const std::vector<Task>& tasks, const RunArguments& arguments, cases::Tier tier) {
  return process::serve([&](const process::WorkerRequest& request) {
    const Task& task = tasks.at(request.task);
    if (request.name != name_of(task)) {
      throw std::runtime_error("its process has another list of cases: no " + request.name);
    }
    return process::encode(
        answer_to(task, arguments, tier, process::decode<CaseRequest>(request.body)));
  });
}

}  // namespace plumb::tools
