// SPDX-License-Identifier: Apache-2.0
#include "decode/watch/side_by_side.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "decode/checks/fresh_checks.h"
#include "decode/schedule/environment.h"

namespace plumb::cases {

namespace {

using Results = std::vector<std::vector<std::byte>>;  // results of each step

// Setup and schedule of the n-th engine.
struct EngineRunner {
  DecodeSetup setup;
  std::vector<ScheduledStep> schedule;
};

EngineRunner make_runner(const DecodeSetup& setup, ScheduleShape shape, int n) {
  EngineRunner runner{setup, {}};
  runner.setup.environment.seed += static_cast<std::uint64_t>(n);
  shape.seed += static_cast<std::uint64_t>(n);
  runner.schedule = make_schedule(shape, setup.geometry);
  return runner;
}

void enqueue(const EngineRunner& runner, std::size_t step, WatchedEngine& watched) {
  const ScheduledStep& scheduled = runner.schedule.at(step);
  let_requests_change(scheduled, watched.engine);
  disturb(scheduled, runner.setup.environment, watched);
  watched.engine.step(scheduled.batch);
}

Results run_alone(const EngineRunner& runner) {
  WatchedEngine watched(runner.setup);
  watched.engine.capture();
  Results results;
  for (std::size_t step = 0; step < runner.schedule.size(); ++step) {
    enqueue(runner, step, watched);
    watched.device->synchronize();
    results.push_back(live_results(watched));
  }
  return results;
}

}  // namespace

WatchResult watch_side_by_side(const DecodeSetup& setup, const ScheduleShape& shape, int count) {
  std::vector<EngineRunner> runners;
  std::vector<Results> alone;
  std::vector<std::unique_ptr<WatchedEngine>> engines;
  const std::shared_ptr<device::Device> device = open(setup);
  for (int n = 0; n < count; ++n) {
    runners.push_back(make_runner(setup, shape, n));
    alone.push_back(run_alone(runners.back()));
    engines.push_back(std::make_unique<WatchedEngine>(runners.back().setup, device));
    engines.back()->engine.capture();
  }
  WatchResult result;
  for (; result.steps < shape.steps && result.clean(); ++result.steps) {
    const auto step = static_cast<std::size_t>(result.steps);
    Findings findings(result.steps);
    for (std::size_t n = 0; n < runners.size(); ++n) enqueue(runners[n], step, *engines[n]);
    device->synchronize();
    for (std::size_t n = 0; n < runners.size(); ++n) {
      if (live_results(*engines[n]) == alone[n][step]) continue;
      findings.add(
          Detector::alone, 0, "", "",
          fmt::format("runner {} of {} gives other results than when it runs alone", n, count));
    }
    result.findings = findings.all();
  }
  return result;
}

}  // namespace plumb::cases
