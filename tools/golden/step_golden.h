// SPDX-License-Identifier: Apache-2.0
//
// Goldens of decode steps: a digest of what each call wrote.
#pragma once

#include <optional>
#include <string>

#include "cases/drivers/run.h"
#include "decode/schedule/decode_step.h"
#include "decode/watch/call_digests.h"
#include "golden/compare.h"
#include "golden/regenerate.h"

namespace plumb::tools {

// Whether the case is one that goldens are recorded for: a row with `golden` in mode full.
bool wants_golden(const cases::StepCase& which);

// The golden without provenance. Its output `calls` has the format golden::kCallDigests.
golden::CaseGolden golden_of(const cases::StepCase& which, const cases::CallDigests& steps);

// Runs the case for its golden. nullopt: it failed, or this platform skips it; `why` gets a line.
std::optional<cases::CallDigests> digests_of(const cases::StepCase& which,
                                             const cases::RunOptions& options, std::string& why);

// Compares a run of the whole schedule with the golden. Other bits than on the recorded toolchain
// fail; on another one they are drift, because digests have no distance and each call has been
// judged by the reference.
golden::GoldenComparison compare_steps(const golden::CaseGolden& golden,
                                       const cases::StepCase& which,
                                       const cases::CallDigests& steps,
                                       const device::Properties& device, bool exact);

// For golden::difference_of. A case that fails is rejected with its first line.
golden::Compute compute_steps(const cases::StepCase& which, const cases::RunOptions& options);

}  // namespace plumb::tools
