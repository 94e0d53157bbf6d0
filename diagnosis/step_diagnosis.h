// SPDX-License-Identifier: Apache-2.0
//
// Explains why a watched decode step failed. Plants faults of the library (faults/decode) in the
// same steps, one at a time, and compares the values that the calls of the failing step then read
// and write with the observed ones.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/diagnosis.h"
#include "diagnosis/step_values.h"
#include "faults/decode/decode_faults.h"

namespace plumb::cases {

// Evidence of a failed watch (a run of decode steps with all detectors).
struct StepEvidence {
  DecodeSetup setup;
  ScheduleShape shape;
  std::vector<Finding> findings;  // findings of the failed step
  StepValues values;              // values of the failed step; empty if it was not taken
  std::string left_out;           // why the values are not kept
};

// The result of a watch, and the evidence of its first failing step.
struct WatchedFailure {
  WatchResult result;
  StepEvidence evidence;
};
// The hook is called after each step.
WatchedFailure watch_for_evidence(const DecodeSetup& setup, const ScheduleShape& shape,
                                  const StepHook& hook = {});

Diagnosis diagnose_step(const StepEvidence& evidence,
                        const std::vector<DecodeFault>& library = all_decode_faults());

struct DiagnosedWatch {
  WatchResult result;
  Diagnosis diagnosis;       // if the watch failed
  std::string skipped = {};  // why the steps could not be served
};
DiagnosedWatch watch_and_diagnose(const DecodeSetup& setup, const ScheduleShape& shape,
                                  const StepHook& hook = {});

}  // namespace plumb::cases
