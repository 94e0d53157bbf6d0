// SPDX-License-Identifier: Apache-2.0
//
// What plumb faults concludes from its runs of decode steps, with and without a planted fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnosis/diagnosis.h"
#include "faults/decode/fault_runs.h"

namespace plumb::cases {

struct FinishedRun {
  DecodeRun run;
  WatchResult result;
  std::string died;     // how the process ended, if it died before it had a result
  Diagnosis diagnosis;  // for a fault planted in a second setup, and for an alarm

  bool skipped() const { return !run.not_here.empty(); }
  // For a fault that is meant to stay within the numerics: all steps ran, no detector saw the
  // fault, and it flipped choices (codes or selections that are right too, but not those of exact
  // values).
  bool is_within_numerics() const;
  // For all other faults. found: the detector that it is meant for saw it. tempted: a detector that
  // should miss it saw it. blamed: the first finding names the broken op.
  bool found() const { return died.empty() && result.found_by(run.fault->seen_by); }
  bool tempted() const { return result.found_by(run.fault->blind); }
  bool blamed() const;
  // For steps without a fault: true if a detector reported something, the process died, not all
  // steps ran, or no call was judged.
  bool alarm() const;
};

struct Shares {
  int faults = 0, found = 0, blamed = 0, tempted = 0, skipped = 0;
  // Faults in second setups: seen by a detector; named alone by the diagnosis; named among faults
  // that act alike.
  int shown = 0, named = 0, among_others = 0;
  // Faults that are meant to stay within the numerics: how many did (is_within_numerics), and how
  // many did not.
  int within_numerics = 0, beyond_numerics = 0;
  int clean_runs = 0, alarms = 0;
  std::int64_t clean_steps = 0, calls_judged = 0;
};
Shares shares_of(const std::vector<FinishedRun>& all);

// The first finding must name the broken op for this share of the faults.
inline constexpr double kLeastBlamed = 0.8;
// The diagnosis must name this share of the faults that show in second setups, alone or with a
// fault that acts alike. It is not required for fewer than ten such faults.
inline constexpr double kLeastNamed = 0.8;
inline constexpr int kFewestShown = 10;

// Why the faults or detectors do not meet the requirements, one line each. Empty: they do.
std::vector<std::string> objections(const Shares& shares);

}  // namespace plumb::cases
