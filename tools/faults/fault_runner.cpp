// SPDX-License-Identifier: Apache-2.0
#include "tools/faults/fault_runner.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <variant>

#include "decode/watch/step_case_run.h"
#include "process/ordered_map.h"
#include "tools/plugin.h"
#include "tools/result_codec.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using cases::DecodeRun;
using cases::DiagnosedWatch;
using cases::FinishedRun;
using cases::WatchResult;
using process::Death;

// Limits in seconds for one run; the larger one is for production geometry.
constexpr double kTimeout = 300, kLargeTimeout = 1800;

// A fault in its original setup needs no diagnosis, because its name is known.
bool is_diagnosed(const DecodeRun& run) { return run.fault == nullptr || run.elsewhere; }

double timeout_of(const std::vector<DecodeRun>& runs) {
  const bool large = std::any_of(runs.begin(), runs.end(),
                                 [](const DecodeRun& run) { return run.setup.sample > 0; });
  return large ? kLargeTimeout : kTimeout;
}

// Executes runs for one thread.
class RunTaker {
 public:
  RunTaker(const std::vector<DecodeRun>& runs, const std::vector<std::string>& worker)
      : runs_(runs), worker_({.words = worker, .timeout = timeout_of(runs)}) {}

  // On a real device a race does not show in every run, so a run that missed it is repeated.
  FinishedRun finish(std::size_t i) {
    constexpr int kTries = 3;
    const bool race = runs_[i].fault != nullptr && runs_[i].setup.environment.delays;
    FinishedRun finished = finish_once(i);
    for (int tries = 1; race && !finished.found() && tries < kTries; ++tries) {
      finished = finish_once(i);
    }
    return finished;
  }

 private:
  std::variant<DiagnosedWatch, Death> ask(std::size_t i, bool diagnosed) {
    return process::ask<DiagnosedWatch>(worker_, i, runs_[i].name, WatchRequest{diagnosed});
  }

  FinishedRun finish_once(std::size_t i) {
    FinishedRun finished{runs_[i], {}, "", {}};
    if (finished.skipped()) return finished;
    auto answer = ask(i, is_diagnosed(runs_[i]));
    if (const auto* death = std::get_if<Death>(&answer)) {
      finished.died = death->why;
      // A hypothesis of the diagnosis, which starts after a finding, may have crashed.
      if (is_diagnosed(runs_[i])) answer = ask(i, false);
    }
    if (auto* watch = std::get_if<DiagnosedWatch>(&answer)) {
      if (!watch->result.clean()) finished.died.clear();
      finished.run.not_here = watch->skipped;
      finished.result = std::move(watch->result);
      finished.diagnosis = std::move(watch->diagnosis);
    }
    const bool failed = !finished.died.empty() || !finished.result.clean();
    if (failed && is_real(runs_[i].setup.platform)) worker_.retire();
    return finished;
  }

  const std::vector<DecodeRun>& runs_;
  process::Worker worker_;
};

DiagnosedWatch watch_plugin_run(const DecodeRun& run, const std::string& plugin) {
  try {
    WatchResult result = cases::watch_with(step_plugin_process(plugin), run.setup, run.schedule);
    // A failed kernel may have left its process in any state.
    if (!result.clean()) end_plugin_processes();
    return {.result = std::move(result), .diagnosis = {}};
  } catch (const cases::NotOnThisPlatform& why) {
    return {.result = {}, .diagnosis = {}, .skipped = why.what()};
  }
}

}  // namespace

std::vector<FinishedRun> run_all(const std::vector<DecodeRun>& runs,
                                 const std::vector<std::string>& worker, int jobs,
                                 const ReportRun& report) {
  std::vector<FinishedRun> all;
  process::OrderedMap<FinishedRun> map(runs.size(), [&] {
    return [taker = std::make_shared<RunTaker>(runs, worker)](std::size_t i) {
      return taker->finish(i);
    };
  });
  map.run(jobs, [&](std::size_t, FinishedRun&& finished) {
    all.push_back(std::move(finished));
    report(all.back());
  });
  return all;
}

int serve_watches(const std::vector<DecodeRun>& runs, const std::string& plugin) {
  return process::serve([&](const process::WorkerRequest& request) {
    const DecodeRun& run = runs.at(request.task);
    if (run.name != request.name) throw std::runtime_error("no such run: " + request.name);
    if (!plugin.empty()) return process::encode(watch_plugin_run(run, plugin));
    const bool diagnosed = process::decode<WatchRequest>(request.body).diagnosed;
    return process::encode(diagnosed ? cases::watch_and_diagnose(run.setup, run.schedule)
                                     : DiagnosedWatch{cases::result_of(run), {}});
  });
}

}  // namespace plumb::tools
