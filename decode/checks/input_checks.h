// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// Planned contents of one input of the twin (the recorded engine, watch.h), and its range of device
// memory.
struct PlannedInput {
  std::string name;
  ByteRange there;
  std::vector<std::byte> bytes;
};
std::vector<PlannedInput> planned_inputs(const WatchedEngine& watched);

// Checks that the device's inputs equal the host's plan, and that their padding is as the contract
// says.
void check_inputs(WatchedStep& step);

// Checks that the inputs also equalled the plan when this call read them.
void check_inputs_of(const CallRecorder::CallRecording& call,
                     const std::vector<PlannedInput>& planned, WatchedStep& step);

}  // namespace plumb::cases
