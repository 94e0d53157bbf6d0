// SPDX-License-Identifier: Apache-2.0
//
// A case of decode steps, with the fault planted that its row names.
#pragma once

#include <cstdint>
#include <string>

#include "decode/schedule/decode_step.h"
#include "decode/watch/step_case_run.h"

namespace plumb::cases {

// The case on a platform. If its row names a fault, the fault is planted, and parameters that the
// row leaves open come from the fault (faults/decode/decode_faults.h). Throws BadRow, and
// NotOnThisPlatform for a fault that the platform cannot have.
ServedCase planted_case(const StepCase& which, const std::string& platform, std::uint64_t seed);

}  // namespace plumb::cases
