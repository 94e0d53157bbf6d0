// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/fault_verdict.h"

#include <fmt/format.h>

namespace plumb::cases {

bool FinishedRun::blamed() const {
  return !result.clean() && result.findings.front().op == run.fault->broken;
}

bool FinishedRun::is_within_numerics() const {
  return died.empty() && result.clean() && result.steps == run.schedule.steps && result.flips > 0;
}

bool FinishedRun::alarm() const {
  return !died.empty() || !result.clean() || result.steps != run.schedule.steps ||
         result.calls_judged == 0;
}

Shares shares_of(const std::vector<FinishedRun>& all) {
  Shares shares;
  for (const FinishedRun& one : all) {
    if (one.skipped()) {
      shares.skipped += !one.run.elsewhere;
    } else if (one.run.elsewhere) {
      shares.shown += !one.result.clean();
      shares.named += one.diagnosis.names(one.run.fault->name);
      shares.among_others += one.diagnosis.names_among_others(one.run.fault->name);
    } else if (one.run.fault != nullptr && one.run.fault->within_numerics) {
      ++(one.is_within_numerics() ? shares.within_numerics : shares.beyond_numerics);
    } else if (one.run.fault != nullptr) {
      ++shares.faults;
      shares.found += one.found();
      shares.blamed += one.blamed();
      shares.tempted += one.tempted();
    } else {
      ++shares.clean_runs;
      shares.alarms += one.alarm();
      shares.clean_steps += one.result.steps;
      shares.calls_judged += one.result.calls_judged;
    }
  }
  return shares;
}

std::vector<std::string> objections(const Shares& s) {
  std::vector<std::string> all;
  if (s.found < s.faults) all.push_back(fmt::format("{} faults missed", s.faults - s.found));
  if (s.tempted > 0) {
    all.push_back(fmt::format("{} faults seen by a detector that should miss them", s.tempted));
  }
  if (s.beyond_numerics > 0) {
    all.push_back(
        fmt::format("{} faults are not within the numerics, or flip no choice", s.beyond_numerics));
  }
  if (s.alarms > 0) all.push_back(fmt::format("{} alarms without a fault", s.alarms));
  if (s.blamed < kLeastBlamed * s.faults) {
    all.push_back(fmt::format("the broken op is blamed first for less than {:.0f} % of the faults",
                              100 * kLeastBlamed));
  }
  if (s.shown >= kFewestShown && s.named + s.among_others < kLeastNamed * s.shown) {
    all.push_back(
        fmt::format("the diagnosis names less than {:.0f} % of the faults in the second setup",
                    100 * kLeastNamed));
  }
  return all;
}

}  // namespace plumb::cases
