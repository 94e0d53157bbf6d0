// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_reporter.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "process/ordered_map.h"
#include "tools/output.h"
#include "tools/run/devices.h"
#include "tools/run/failure_groups.h"

namespace plumb::tools {

RunReporter::RunReporter(const std::vector<Task>& tasks, const RunArguments& arguments,
                         std::vector<std::string> devices)
    : tasks_(tasks),
      arguments_(arguments),
      devices_(std::move(devices)),
      style_(style_of(STDOUT_FILENO)) {}

void RunReporter::run(int jobs, cases::Tier tier, std::vector<Finished>& all) {
  std::atomic<std::size_t> workers = 0;
  process::OrderedMap<Finished> map(tasks_.size(), [&] {
    auto runner = std::make_shared<CaseRunner>(tasks_, arguments_, tier,
                                               worker_environment(devices_, workers++));
    return [this, runner](std::size_t i) { return memory_.run([&] { return runner->run(i); }); };
  });
  try {
    map.run(jobs, [&](std::size_t i, Finished&& finished) {
      all.push_back(std::move(finished));
      report(all.back(), i + 1);
      count_failure(all.back());
    });
  } catch (...) {
    progress_.clear();
    throw;
  }
  progress_.clear();
}

void RunReporter::count_failure(const Finished& finished) {
  failures_ += is_failure(finished);
  if (arguments_.most_failures == 0 || failures_ < arguments_.most_failures) return;
  throw EnoughFailures(
      fmt::format("stopped after {} failure{}", failures_, failures_ == 1 ? "" : "s"));
}

// Only the first failure of a signature gets the whole text.
std::string RunReporter::text_of(const Finished& finished) {
  if (!is_failure(finished)) return "";
  const std::string here = " " + finished.result.platform;
  const auto [known, first] = shown_.emplace(signature_of(finished), finished.result.id + here);
  if (first) return failure_text(finished, style_);
  std::string as = known->second;
  if (as.ends_with(here)) as.resize(as.size() - here.size());
  return repeated_failure_text(finished, as, style_);
}

void RunReporter::report(const Finished& finished, std::size_t done) {
  const std::string text = text_of(finished);
  progress_.clear();
  put(text);
  passed_of_op_ += finished.result.outcome == cases::Outcome::passed;
  ++cases_of_op_;
  if (!progress_.is_shown()) return report_op(done);
  // Flush, so that text and progress keep their order on one terminal.
  std::fflush(stdout);
  const double left =
      seconds_since(start_) / static_cast<double>(done) * static_cast<double>(tasks_.size() - done);
  progress_.show(
      fmt::format("[{}/{}] {:.0f} s left  {}", done, tasks_.size(), left, finished.result.id));
}

// Without a terminal: prints a line when an op ends, so that a log shows progress.
void RunReporter::report_op(std::size_t done) {
  const std::string_view op = tasks_[done - 1].which->op();
  if (done < tasks_.size() && tasks_[done].which->op() == op) return;
  const bool lacking =
      arguments_.plugin && op != cases::kDecodeStep && !arguments_.plugin->offers(op);
  if (tasks_.front().which->op() != tasks_.back().which->op() && !arguments_.quiet && !lacking) {
    put(fmt::format("{:<46}{} of {} passed\n", op, passed_of_op_, cases_of_op_));
    std::fflush(stdout);
  }
  passed_of_op_ = cases_of_op_ = 0;
}

}  // namespace plumb::tools
