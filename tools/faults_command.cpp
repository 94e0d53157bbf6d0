// SPDX-License-Identifier: Apache-2.0
//
// plumb faults: decode steps with a fault planted, each of which the detectors have to find, and
// steps without one, where they have to be silent.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "cases/case_file.h"
#include "device/device.h"
#include "reference/bound.h"
#include "tools/commands.h"
#include "tools/faults_report.h"
#include "tools/lane.h"
#include "tools/output.h"
#include "tools/wire.h"
#include "tools/worker.h"

namespace plumb::tools {

namespace {

using cases::DecodeFault;
using cases::DecodeRun;
using cases::FinishedRun;

constexpr double kTimeout = 300;  // seconds of one run

// Faults are where they are meant to show, and nothing there is news.
bool is_diagnosed(const DecodeRun& run) { return run.fault == nullptr || run.elsewhere; }

// A worker knows each run by two numbers: its own, and, without a diagnosis, that much more as
// there are runs.
Bytes answer(const std::vector<DecodeRun>& runs, std::uint64_t task) {
  const DecodeRun& run = runs.at(task % runs.size());
  if (task < runs.size() && is_diagnosed(run)) {
    return to_bytes(cases::watch_and_diagnose(run.setup, run.schedule));
  }
  return to_bytes(cases::DiagnosedWatch{cases::watch(run.setup, run.schedule), {}});
}

// Each in a worker process, handed over in their order. A fault may crash the process that it is
// planted in.
class Runner {
 public:
  explicit Runner(const std::vector<DecodeRun>& runs) : runs_(runs), results_(runs.size()) {}

  template <class Report>
  std::vector<FinishedRun> run(int jobs, Report report) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < jobs; ++i) threads.emplace_back([this] { work(); });
    std::vector<FinishedRun> all;
    for (auto& result : results_) {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [&] { return result.has_value() || failure_; });
      if (failure_) break;
      all.push_back(std::move(*result));
      lock.unlock();
      report(all.back());
    }
    threads.clear();
    if (failure_) std::rethrow_exception(failure_);
    return all;
  }

 private:
  void work() {
    Worker worker(own_command_line(), kTimeout);
    for (std::size_t i = next_++; i < runs_.size(); i = next_++) {
      try {
        FinishedRun finished = finish(i, worker);
        const std::lock_guard lock(mutex_);
        results_[i] = std::move(finished);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        next_ = runs_.size();
      }
      ready_.notify_one();
    }
  }

  FinishedRun finish(std::size_t i, Worker& worker) const {
    FinishedRun finished{runs_[i], {}, "", {}};
    if (finished.skipped()) return finished;
    auto answer = worker.run(i);
    // What has crashed it may be a hypothesis: once more without any.
    if (std::get_if<Death>(&answer) && is_diagnosed(runs_[i]))
      answer = worker.run(i + runs_.size());
    if (const auto* death = std::get_if<Death>(&answer)) {
      finished.died = death->why;
    } else {
      auto watch = watch_from(std::get<Bytes>(answer));
      finished.result = std::move(watch.result);
      finished.diagnosis = std::move(watch.diagnosis);
    }
    if (!finished.result.clean() && is_real(runs_[i].setup.platform)) worker.retire();
    return finished;
  }

  const std::vector<DecodeRun>& runs_;
  std::vector<std::optional<FinishedRun>> results_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable ready_;
  std::exception_ptr failure_;
};

std::vector<std::string> platforms_of(const FaultsArguments& arguments) {
  std::vector<std::string> platforms = {"sim-sm90", "sim-gfx942"};
  if (!arguments.platforms.empty()) platforms = choose_platforms(arguments.platforms);
  for (const std::string& platform : platforms) {
    const std::string why = device::why_unavailable(platform);
    if (!why.empty()) throw NotInThisBuild(fmt::format("{}: {}", platform, why));
  }
  return platforms;
}

std::vector<const DecodeFault*> faults_of(const std::vector<std::string>& patterns) {
  std::vector<const DecodeFault*> chosen;
  std::vector<std::string> names;
  std::vector<bool> used(patterns.size(), false);
  for (const DecodeFault& fault : cases::all_decode_faults()) {
    bool wanted = patterns.empty();
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!cases::matches(patterns[i], fault.name)) continue;
      wanted = used[i] = true;
    }
    if (wanted) chosen.push_back(&fault);
    names.push_back(fault.name);
  }
  const auto unused = std::find(used.begin(), used.end(), false);
  if (unused == used.end()) return chosen;
  const std::string& pattern = patterns[static_cast<std::size_t>(unused - used.begin())];
  const std::string nearest = cases::nearest_name(pattern, names);
  throw NotInThisBuild(
      fmt::format("no fault matches \"{}\"{}", pattern,
                  nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

std::vector<DecodeRun> runs_of(const FaultsArguments& arguments) {
  const std::vector<std::string> platforms = platforms_of(arguments);
  const std::uint64_t seed = parse_seed(arguments.seed_text);
  if (arguments.clean_steps > 0) {
    if (!arguments.patterns.empty()) throw UsageError("--clean has no fault: --fault is too much");
    return cases::random_runs(platforms, arguments.clean_steps, seed);
  }
  const auto faults = faults_of(arguments.patterns);
  std::vector<DecodeRun> runs = fault_runs(platforms, faults, seed);
  std::vector<DecodeRun> elsewhere = cases::elsewhere_runs(platforms, faults, seed);
  std::move(elsewhere.begin(), elsewhere.end(), std::back_inserter(runs));
  std::vector<DecodeRun> clean = control_runs(platforms, faults, seed);
  // Who asks for one fault does not want to wait for everything else.
  if (arguments.patterns.empty()) {
    std::vector<DecodeRun> more = cases::traffic_runs(platforms, seed);
    std::move(more.begin(), more.end(), std::back_inserter(clean));
  }
  std::move(clean.begin(), clean.end(), std::back_inserter(runs));
  return runs;
}

// Line by line, as the results come.
class Printer {
 public:
  explicit Printer(bool quiet) : quiet_(quiet) {}

  void operator()(const FinishedRun& one) {
    if (one.run.elsewhere) {
      print_elsewhere(one);
    } else if (one.run.fault != nullptr) {
      print_fault(one);
    } else {
      put(alarm_text(one, style_));
    }
    std::fflush(stdout);
  }

 private:
  void print_fault(const FinishedRun& one) {
    if (quiet_ && (one.skipped() || (one.found() && one.blamed() && !one.tempted()))) return;
    if (platform_ != one.run.setup.platform) {
      if (platform_.empty()) put(fault_matrix_legend());
      platform_ = one.run.setup.platform;
      put(fault_matrix_head(platform_, style_));
    }
    put(fault_text(one, style_));
  }

  void print_elsewhere(const FinishedRun& one) {
    if (one.skipped() || (quiet_ && one.diagnosis.names(one.run.fault->name))) return;
    if (!std::exchange(elsewhere_, true)) put(elsewhere_head(style_));
    put(elsewhere_text(one, style_));
  }

  bool quiet_, elsewhere_ = false;
  const Style style_ = style_of(STDOUT_FILENO);
  std::string platform_;  // of the matrix so far
};

// A real device's memory has to hold all that run at a time.
int jobs_of(const FaultsArguments& arguments, const std::vector<DecodeRun>& runs, int cores) {
  if (arguments.jobs > 0) return arguments.jobs;
  const auto real = [](const DecodeRun& run) { return is_real(run.setup.platform); };
  return std::any_of(runs.begin(), runs.end(), real) ? 1 : cores;
}

}  // namespace

int faults_command(const FaultsArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // whoever reads the text may stop reading
  const std::vector<DecodeRun> runs = runs_of(arguments);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int jobs = jobs_of(arguments, runs, cores);
  reference::set_thread_count(std::max(1, cores / jobs));
  if (is_worker()) {
    return serve([&](std::uint64_t task) { return answer(runs, task); });
  }
  if (!arguments.json.empty()) check_writable(arguments.json);
  const auto all = Runner(runs).run(jobs, Printer(arguments.quiet));
  const cases::Shares shares = shares_of(all);
  put(shares_text(shares, style_of(STDOUT_FILENO)));
  if (!arguments.json.empty()) write_file(arguments.json, to_json(all));
  return exit_code(shares);
}

}  // namespace plumb::tools
