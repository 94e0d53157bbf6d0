// SPDX-License-Identifier: Apache-2.0
//
// Runs a case of decode steps as plumb run does: with the fault that its row names, if any, and
// with a diagnosis of a failure.
#pragma once

#include "decode/watch/step_case_run.h"

namespace plumb::cases {

// `diagnosed`: diagnose a failure, which plants faults and runs the steps again.
StepCaseResult run_decode_step(const StepCase& which, const RunOptions& options, bool diagnosed);
// Runs the steps with a plug-in's kernels. Without a diagnosis, because planted kernels are plumb's
// own.
StepCaseResult run_decode_step(const StepCase& which, const RunOptions& options,
                               const StepPlugin& plugin);

}  // namespace plumb::cases
