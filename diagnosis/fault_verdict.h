// SPDX-License-Identifier: Apache-2.0
//
// What follows from the runs of plumb faults.
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
  std::string died;     // how its process ended before there was a result
  Diagnosis diagnosis;  // of a fault elsewhere, and of an alarm

  bool skipped() const { return !run.not_here.empty(); }
  // Of a fault that no detector may see: none did, and it has flipped choices.
  bool is_within_numerics() const;
  // Of any other: by the detector that it is meant for; by the wrong one; put down to the broken
  // op.
  bool found() const { return died.empty() && result.found_by(run.fault->seen_by); }
  bool tempted() const { return result.found_by(run.fault->blind); }
  bool blamed() const;
  // Of steps without a fault: one that was not taken is as bad as one that is wrong.
  bool alarm() const;
};

struct Shares {
  int faults = 0, found = 0, blamed = 0, tempted = 0, skipped = 0;
  // Elsewhere: that show; named alone, or among faults that act alike.
  int shown = 0, named = 0, among_others = 0;
  int within_numerics = 0, beyond_numerics = 0;  // of faults that no detector may see
  int clean_runs = 0, alarms = 0;
  std::int64_t clean_steps = 0, calls_judged = 0;
};
Shares shares_of(const std::vector<FinishedRun>& all);

// The first finding has to name the broken op for so many of the faults.
inline constexpr double kLeastBlamed = 0.8;
// The diagnosis has to name so many of those that show elsewhere, alone or beside one that acts
// alike; of fewer than ten the share says nothing.
inline constexpr double kLeastNamed = 0.8;
inline constexpr int kFewestShown = 10;

// Why the faults or the detectors are not what they should be, a line each; none: they are.
std::vector<std::string> objections(const Shares& shares);

}  // namespace plumb::cases
