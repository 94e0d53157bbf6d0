// SPDX-License-Identifier: Apache-2.0
//
// Measures how many smoke cases run per second of CPU time on one simulated platform, and the share
// of each phase: fill, reference, device, judge.
#include <fmt/format.h>

#include <chrono>

#include "cases/drivers/run.h"
#include "tools/bench/bench.h"

namespace plumb::tools {

namespace {

void add(const cases::Phases& phases, cases::Phases& sum) {
  sum.fill += phases.fill;
  sum.reference += phases.reference;
  sum.device += phases.device;
  sum.judge += phases.judge;
}

void run_all(const Selected& selected, cases::Phases& sum) {
  for (const cases::Case& which : selected.cases) {
    cases::RunOptions options;
    options.platform = kBenchPlatform;
    options.tier = selected.tier;
    add(cases::run_case(which, options).phases, sum);
  }
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Selected smoke_cases(std::string_view platform) {
  Selection selection;
  selection.platforms = {std::string(platform)};
  selection.tier = "smoke";
  return select(selection);
}

std::vector<Measurement> bench_cases() {
  constexpr int kRepetitions = 3;
  const Selected selected = smoke_cases(kBenchPlatform);
  const auto count = static_cast<double>(selected.cases.size());
  cases::Phases sum;
  std::vector<double> speeds;
  const double wall_start = wall_seconds();
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const double start = cpu_seconds();
    run_all(selected, sum);
    speeds.push_back(count / (cpu_seconds() - start));
  }
  const double wall = (wall_seconds() - wall_start) / kRepetitions;
  const Summary speed = summarize(speeds);
  std::vector<Measurement> measured{
      {"cases",
       speed.median,
       speed.spread,
       "per second",
       {},
       fmt::format("{} cases, {:.2f} s, {:.2f} s on the wall", count, count / speed.median, wall)}};
  const double total = std::max(1e-9, sum.fill + sum.reference + sum.device + sum.judge);
  const std::pair<std::string_view, double> parts[] = {{"fill", sum.fill},
                                                       {"reference", sum.reference},
                                                       {"device", sum.device},
                                                       {"judge", sum.judge}};
  for (const auto& [name, seconds] : parts) {
    measured.push_back(
        {fmt::format("of which {}", name),
         100 * seconds / total,
         0,
         "%",
         {},
         fmt::format("{:.1f} ms per case on the wall", 1e3 * seconds / (count * kRepetitions))});
  }
  return measured;
}

}  // namespace plumb::tools
