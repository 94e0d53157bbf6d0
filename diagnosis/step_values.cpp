// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/step_values.h"

#include <stdexcept>

namespace plumb::cases {

namespace {

using device::decode::StepPart;
using Parts = device::decode::StepSegments::Parts;

// Recorded calls of a part of the step; nullptr if the part has not run.
const CallRecorder::Calls* calls_of(const WatchedEngine& twin, const StepPart& part) {
  try {
    return &twin.recorder->enqueued(part);
  } catch (const std::out_of_range&) {
    return nullptr;
  }
}

CallValues values_of(const CallRecorder::CallRecording& recording, const StepPart& part) {
  CallValues values{recording.op, part.name + ": " + recording.place.name, {}};
  for (const CallRecorder::TensorCopy& copy : recording.copies) {
    if (copy.to != nullptr) values.tensors.push_back(recording.tensors.at(copy.tensor));
  }
  return values;
}

}  // namespace

StepValues values_of(const WatchedEngine& twin, const Parts& parts) {
  StepValues values;
  for (const StepPart& part : parts) {
    if (calls_of(twin, part) == nullptr) continue;
    for (const auto& recording : twin.recorder->fetch(part))
      values.push_back(values_of(*recording, part));
  }
  return values;
}

std::int64_t bytes_of(const WatchedEngine& twin, const Parts& parts) {
  std::size_t bytes = 0;
  for (const StepPart& part : parts) {
    const CallRecorder::Calls* calls = calls_of(twin, part);
    if (calls == nullptr) continue;
    for (const auto& recording : *calls) {
      for (const CallRecorder::TensorCopy& copy : recording->copies)
        bytes += copy.to != nullptr ? copy.bytes : 0;
    }
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace plumb::cases
