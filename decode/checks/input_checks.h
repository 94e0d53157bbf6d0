// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "decode/watch/watched_step.h"

namespace plumb::cases {

// What the host planned of one input of the twin.
struct PlannedInput {
  std::string name;
  ByteRange there;
  std::vector<std::byte> bytes;
};
std::vector<PlannedInput> planned_inputs(const WatchedEngine& watched);

// The device's inputs are what the host planned, and padding in them is what the contract says.
void check_inputs(WatchedStep& step);

// They were so too when this call read them.
void check_inputs_of(const CallRecorder::CallRecording& call,
                     const std::vector<PlannedInput>& planned, WatchedStep& step);

}  // namespace plumb::cases
