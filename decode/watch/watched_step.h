// SPDX-License-Identifier: Apache-2.0
//
// Data that the checks of one step share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "decode/checks/findings.h"
#include "decode/recording/step_writers.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

// The fp8 dialect in which a call uses a cache.
struct DialectInUse {
  std::string name, call;  // "e4m3fn", "layer 1 cache write"
};

struct WatchedStep {
  WatchedEngine &plain, &twin, &eager, &other;
  device::decode::GraphMode mode;  // the requested mode
  Findings findings;
  // Plans of this step and of the steps that were enqueued before it without a wait.
  std::vector<device::decode::StepPlan> plans = {};
  Snapshot before = {}, after = {};                        // memory of the twin around the step
  StepWriters writers = {};                                // writers in the twin
  std::map<const std::byte*, DialectInUse> dialects = {};  // per cache, by its first byte
  std::int64_t calls = 0;  // calls checked so far; the next one's position
  // Parts of the twin (the recorded engine, watch.h) in this step and in those in flight before it,
  // each as it ran last.
  device::decode::StepSegments::Parts parts = {};
};

}  // namespace plumb::cases
