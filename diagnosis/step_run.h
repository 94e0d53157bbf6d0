// SPDX-License-Identifier: Apache-2.0
//
// A schedule up to one of its steps on the same platform, with a fault planted or without: nobody
// watches, only the values of that step are kept.
#pragma once

#include <cstdint>
#include <optional>

#include "decode/schedule/schedule.h"
#include "diagnosis/step_values.h"

namespace plumb::cases {

struct StepRun {
  StepValues values;
  std::int64_t builds = 0;  // of metadata before the step
};
// A fault that throws does so here. Without a recorder there are no values.
StepRun run_to_step(const DecodeSetup& setup, const ScheduleShape& shape, std::int64_t step,
                    std::optional<CallRecorder::Kept> recorder = CallRecorder::Kept::everything);

// The same steps with all of plumb's own code as it should be.
DecodeSetup as_it_should_be(DecodeSetup setup);

}  // namespace plumb::cases
