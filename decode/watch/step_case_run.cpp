// SPDX-License-Identifier: Apache-2.0
#include "decode/watch/step_case_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cases/drivers/platform_share.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

// "layers: layer 1 attention", or the op alone.
std::string place_of(const Finding& finding) {
  const bool named = !finding.call.empty() && finding.call != finding.op;
  return finding.op + (named ? " (" + finding.call + ")" : "");
}

Failure failure_of(const ServedCase& served, const WatchResult& watched) {
  Failure failure;
  failure.context = fmt::format("step {}: {}, {}", watched.findings.front().step,
                                text_of(served.shape), device::decode::name_of(served.setup.mode));
  for (const Finding& finding : watched.findings) {
    const std::string place = place_of(finding);
    std::string line = fmt::format("{}{}: {}", place.empty() ? "" : place + ": ",
                                   name_of(finding.detector), finding.text);
    // Target and drafter may have the same to say.
    if (!failure.lines.empty() && failure.lines.back() == line) continue;
    failure.lines.push_back(std::move(line));
  }
  return failure;
}

void watch_case(const ServedCase& served, const StepCaseDriver& driver, StepCaseResult& one) {
  const WatchedCase watched = driver.watch(served);
  CaseResult& result = one.result;
  result.points = 1;
  result.launches = watched.result.steps;
  result.comparisons = watched.result.calls_judged;
  if (watched.result.clean()) return;
  result.failures.push_back(failure_of(served, watched.result));
  result.diagnosis = watched.diagnosis;
  one.findings = watched.result.findings;
}

// Why the platform cannot have the case; "" if it can.
std::string why_skipped(const StepCase& which, const std::string& platform) {
  const std::string unavailable = device::why_unavailable(platform);
  if (!unavailable.empty()) return unavailable;
  const bool simulated = device::open_device(platform)->properties().simulated;
  return which.row.real_only && simulated ? "a row for real devices: the simulator cannot afford it"
                                          : "";
}

// One of the platforms that run the same kernels, in turn by case, takes all steps.
void keep_share(const StepCase& which, const RunOptions& options, ScheduleShape& shape) {
  constexpr std::int64_t kLeast = 2;
  if (!options.divides_schedules || shape.steps <= kLeast) return;
  if (share_of(options.platform).has(seed_of(which.id()))) return;
  shape.steps = std::max((shape.steps + 1) / 2, kLeast);
}

}  // namespace

StepCaseResult run_step_case(const StepCase& which, const RunOptions& options,
                             const StepCaseDriver& driver) {
  StepCaseResult one;
  CaseResult& result = one.result;
  result.id = which.id();
  result.platform = options.platform;
  result.reason = why_skipped(which, options.platform);
  if (!result.reason.empty()) {
    result.outcome = Outcome::skipped;
    return one;
  }
  const auto start = std::chrono::steady_clock::now();
  try {
    ServedCase served = driver.serve(which, options.platform, options.seed);
    keep_share(which, options, served.shape);
    watch_case(served, driver, one);
    settle(which.row, result);
  } catch (const NotOnThisPlatform& why) {
    result.outcome = Outcome::skipped;
    result.reason = why.what();
  } catch (const std::invalid_argument& why) {  // a mode that the model cannot have
    result.outcome = Outcome::skipped;
    result.reason = why.what();
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  result.phases.device = taken.count();
  return one;
}

}  // namespace plumb::cases
