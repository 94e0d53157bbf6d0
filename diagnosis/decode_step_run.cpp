// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/decode_step_run.h"

#include "diagnosis/step_diagnosis.h"
#include "faults/decode/planted_case.h"

namespace plumb::cases {

StepCaseResult run_decode_step(const StepCase& which, const RunOptions& options, bool diagnosed) {
  StepCaseDriver driver;
  driver.serve = planted_case;
  if (diagnosed) {
    driver.watch = [](const ServedCase& served, const StepHook& hook) {
      DiagnosedWatch watched = watch_and_diagnose(served.setup, served.shape, hook);
      return WatchedCase{std::move(watched.result), text_of(watched.diagnosis)};
    };
  }
  return run_step_case(which, options, driver);
}

StepCaseResult run_decode_step(const StepCase& which, const RunOptions& options,
                               const StepPlugin& plugin) {
  StepCaseDriver driver;
  driver.serve = planted_case;
  return run_step_case(which, options, driver, &plugin);
}

}  // namespace plumb::cases
