// SPDX-License-Identifier: Apache-2.0
//
// Data that the checks of one step share.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/checks/findings.h"
#include "decode/recording/step_writers.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

struct WatchedStep {
  WatchedEngine &plain, &twin, &eager, &other;
  device::decode::GraphMode mode;  // the requested mode
  Findings findings;
  // Plans of this step and of the steps that were enqueued before it without a wait.
  std::vector<device::decode::StepPlan> plans = {};
  Snapshot before = {}, after = {};  // memory of the twin around the step
  StepWriters writers = {};          // writers in the twin
  std::int64_t calls = 0;            // calls checked so far; the next one's position
  // Parts of the twin (the recorded engine, watch.h) in this step and in those in flight before it,
  // each as it ran last.
  device::decode::StepSegments::Parts parts = {};
};

}  // namespace plumb::cases
