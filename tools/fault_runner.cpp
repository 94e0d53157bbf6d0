// SPDX-License-Identifier: Apache-2.0
#include "tools/fault_runner.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "tools/selection.h"
#include "tools/wire.h"
#include "tools/worker.h"

namespace plumb::tools {

namespace {

using cases::DecodeRun;
using cases::FinishedRun;

// Seconds of one run; in production geometry, whose runs have more to do.
constexpr double kTimeout = 300, kLargeTimeout = 1800;

// Faults are where they are meant to show, and nothing there is news.
bool is_diagnosed(const DecodeRun& run) { return run.fault == nullptr || run.elsewhere; }

class Runner {
 public:
  Runner(const std::vector<DecodeRun>& runs, const std::vector<std::string>& worker)
      : runs_(runs), worker_(worker), results_(runs.size()) {}

  std::vector<FinishedRun> run(int jobs, const ReportRun& report) {
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
    const bool large = std::any_of(runs_.begin(), runs_.end(),
                                   [](const DecodeRun& run) { return run.setup.sample > 0; });
    Worker worker(worker_, large ? kLargeTimeout : kTimeout);
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

  // Whether a race shows on a real device is not for the host to say: it has another chance or two.
  FinishedRun finish(std::size_t i, Worker& worker) const {
    constexpr int kTries = 3;
    const bool race = runs_[i].fault != nullptr && runs_[i].setup.environment.delays;
    FinishedRun finished = finish_once(i, worker);
    for (int tries = 1; race && !finished.found() && tries < kTries; ++tries) {
      finished = finish_once(i, worker);
    }
    return finished;
  }

  FinishedRun finish_once(std::size_t i, Worker& worker) const {
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
  const std::vector<std::string>& worker_;
  std::vector<std::optional<FinishedRun>> results_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable ready_;
  std::exception_ptr failure_;
};

}  // namespace

std::vector<FinishedRun> run_all(const std::vector<DecodeRun>& runs,
                                 const std::vector<std::string>& worker, int jobs,
                                 const ReportRun& report) {
  return Runner(runs, worker).run(jobs, report);
}

Bytes answer_of(const std::vector<DecodeRun>& runs, std::uint64_t task) {
  const DecodeRun& run = runs.at(task % runs.size());
  if (task < runs.size() && is_diagnosed(run)) {
    return to_bytes(cases::watch_and_diagnose(run.setup, run.schedule));
  }
  return to_bytes(cases::DiagnosedWatch{cases::result_of(run), {}});
}

}  // namespace plumb::tools
