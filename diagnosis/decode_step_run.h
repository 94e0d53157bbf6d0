// SPDX-License-Identifier: Apache-2.0
//
// Runs a case of decode steps as plumb run does: with the fault that its row names, if it names
// one, and with a diagnosis of a failure.
#pragma once

#include "decode/watch/step_case_run.h"

namespace plumb::cases {

// `diagnosed`: a failure is, which plants faults.
StepCaseResult run_decode_step(const StepCase& which, const RunOptions& options, bool diagnosed);
// With a plug-in's kernels, and no diagnosis: planted kernels are plumb's own.
StepCaseResult run_decode_step(const StepCase& which, const RunOptions& options,
                               const StepPlugin& plugin);

}  // namespace plumb::cases
