// SPDX-License-Identifier: Apache-2.0
//
// A case of decode steps with the fault that its row names.
#pragma once

#include <cstdint>
#include <string>

#include "decode/schedule/decode_step.h"
#include "decode/watch/step_case_run.h"

namespace plumb::cases {

// What the case is on a platform. Where its row names a fault, that is planted, and what the row
// leaves open is as the fault has it (faults/decode/decode_faults.h). Throws BadRow, and
// NotOnThisPlatform for a fault that the platform cannot have.
ServedCase planted_case(const StepCase& which, const std::string& platform, std::uint64_t seed);

}  // namespace plumb::cases
