// SPDX-License-Identifier: Apache-2.0
//
// Runs a case of a decode step, with the fault that its row names or without one.
#pragma once

#include <cstdint>
#include <string>

#include "cases/drivers/run.h"
#include "decode/schedule/decode_step.h"

namespace plumb::cases {

// What the case is on a platform. Where its row names a fault, that is planted, and what the row
// leaves open is as the fault has it (faults/decode/decode_faults.h). Throws BadRow, and
// NotOnThisPlatform for a fault that the platform cannot have.
ServedCase planted_case(const Case& which, const std::string& platform, std::uint64_t seed);

// `diagnosed`: a failure is, which plants faults.
CaseResult run_decode_step(const Case& which, const RunOptions& options, bool diagnosed);

}  // namespace plumb::cases
