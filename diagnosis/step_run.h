// SPDX-License-Identifier: Apache-2.0
//
// Runs a schedule up to one of its steps on the same platform, with or without a planted fault. No
// detector is active; only the values of that step are recorded.
#pragma once

#include <cstdint>
#include <optional>

#include "decode/schedule/schedule.h"
#include "diagnosis/step_values.h"

namespace plumb::cases {

struct StepRun {
  StepValues values;
  std::int64_t builds = 0;  // number of metadata builds before the step
};
// An exception of the fault passes through. Without a recorder no values are kept.
StepRun run_to_step(const DecodeSetup& setup, const ScheduleShape& shape, std::int64_t step,
                    std::optional<CallRecorder::Kept> recorder = CallRecorder::Kept::everything);

// The same setup without any planted fault in plumb's own code.
DecodeSetup as_it_should_be(DecodeSetup setup);

}  // namespace plumb::cases
