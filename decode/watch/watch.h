// SPDX-License-Identifier: Apache-2.0
//
// A decode step under watch. Four engines run the same schedule, each on a device of its own:
//
//   plain   as it would be served: graphs, nothing recorded
//   twin    the same with a recorder in its graphs: every op is judged against the reference on the
//   bytes
//           that it was given, and nothing but its outputs may have changed
//   eager   every step run eagerly at the same padded shape, on a fresh attention state, recorded:
//           the twin's calls must have the same bits
//   other   as plain, with other values wherever padding may hold anything, and in scratch between
//           two steps: the same live rows
//
// What they say is put in order: the first finding names the op that went wrong first.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "decode/checks/findings.h"
#include "decode/schedule/schedule.h"
#include "decode/watch/step_features.h"
#include "decode/watch/watched_step.h"

namespace plumb::cases {

struct WatchResult {
  std::vector<Finding> findings;  // by step, then position
  std::int64_t steps = 0, calls_judged = 0;
  FeatureCounts features = {};  // of the steps
  // Experts that routers chose, and those that others would have been: where somebody counts.
  std::int64_t choices = 0, flips = 0;
  bool clean() const { return findings.empty(); }
  bool found_by(Detector detector) const;
};

// Told of each step when it has been checked.
using StepHook = std::function<void(const WatchedStep&)>;

// Ends after the first step with findings.
WatchResult watch(const DecodeSetup& setup, const ScheduleShape& shape, const StepHook& hook = {});

}  // namespace plumb::cases
