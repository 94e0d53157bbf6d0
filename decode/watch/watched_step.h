// SPDX-License-Identifier: Apache-2.0
//
// What the checks of one step share.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/checks/findings.h"
#include "decode/recording/step_writers.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

struct WatchedStep {
  WatchedEngine &plain, &twin, &eager, &other;
  device::decode::GraphMode mode;  // that was asked for
  Findings findings;
  // Of this step and of those that were enqueued before it without a wait.
  std::vector<device::decode::StepPlan> plans = {};
  Snapshot before = {}, after = {};  // of the twin, around the step
  StepWriters writers = {};          // of the twin
  std::int64_t calls = 0;            // checked so far: the position of the next
  // Of the twin, in this step and in those in flight before it, each as it ran last.
  device::decode::StepSegments::Parts parts = {};
};

}  // namespace plumb::cases
