// SPDX-License-Identifier: Apache-2.0
//
// Why a watched decode step failed: every fault of the library (faults) is planted in the
// same steps, and what the calls of the failing step then read and write is set against what they
// did.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/diagnosis.h"
#include "diagnosis/step_values.h"
#include "faults/decode/decode_faults.h"

namespace plumb::cases {

// What a failed watch leaves.
struct StepEvidence {
  DecodeSetup setup;
  ScheduleShape shape;
  std::vector<Finding> findings;  // of the step that failed
  StepValues values;              // of it, or nothing: it was not taken
  std::string left_out;           // why the values are not kept
};

// A watch, and the evidence of its first failing step.
struct WatchedFailure {
  WatchResult result;
  StepEvidence evidence;
};
WatchedFailure watch_for_evidence(const DecodeSetup& setup, const ScheduleShape& shape);

Diagnosis diagnose_step(const StepEvidence& evidence,
                        const std::vector<DecodeFault>& library = all_decode_faults());

struct DiagnosedWatch {
  WatchResult result;
  Diagnosis diagnosis;       // of a watch that failed
  std::string skipped = {};  // why the steps could not be served
};
DiagnosedWatch watch_and_diagnose(const DecodeSetup& setup, const ScheduleShape& shape);

}  // namespace plumb::cases
