// SPDX-License-Identifier: Apache-2.0
//
// Watches decode steps. Four engines run the same schedule, each on its own device:
//
//   plain   as served: graphs, nothing recorded
//   twin    as plain, with a recorder in its graphs. The reference judges each op on the bytes
//           that it read, and memory other than its outputs must not change
//   eager   runs each step eagerly at the same padded shape, with a fresh attention state, and
//           is recorded. The twin's calls must have the same bits
//   other   as plain, with other values in padding, and in scratch between two steps, layers and
//           chunks. Live rows must have the same bits
//
// Findings are put in order: the first one names the op that went wrong first.
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
  FeatureCounts features = {};  // what the steps did
  // Expert choices of routers, and how many of them an exact router would have made otherwise. 0
  // unless a fault counts them.
  std::int64_t choices = 0, flips = 0;
  bool clean() const { return findings.empty(); }
  bool found_by(Detector detector) const;
};

// Called after each step has been checked.
using StepHook = std::function<void(const WatchedStep&)>;

// Stops after the first step with findings.
WatchResult watch(const DecodeSetup& setup, const ScheduleShape& shape, const StepHook& hook = {});

}  // namespace plumb::cases
