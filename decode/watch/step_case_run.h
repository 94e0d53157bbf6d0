// SPDX-License-Identifier: Apache-2.0
//
// Runs a case of decode steps: serves what its row says, under watch, and settles the outcome.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/drivers/run.h"
#include "decode/schedule/decode_step.h"
#include "decode/watch/watch.h"

namespace plumb::cases {

// The platform cannot have what a case asks for. The message is the reason.
struct NotOnThisPlatform : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct StepCaseResult {
  CaseResult result;
  std::vector<Finding> findings;  // the failure for machines
};

struct WatchedCase {
  WatchResult result;
  std::string diagnosis = {};  // what a failure looks like, in a line
};

// How a case is served and watched. Faults and their diagnosis put functions of their own here.
struct StepCaseDriver {
  // Throws BadRow; NotOnThisPlatform or std::invalid_argument for a case to be skipped.
  std::function<ServedCase(const StepCase& which, const std::string& platform, std::uint64_t seed)>
      serve = [](const StepCase& which, const std::string& platform, std::uint64_t seed) {
        return served_case(which, DecodeSetup{.platform = platform}, seed);
      };
  std::function<WatchedCase(const ServedCase& served)> watch = [](const ServedCase& served) {
    return WatchedCase{cases::watch(served.setup, served.shape)};
  };
};

// Of the options, platform, seed and divides_schedules count.
StepCaseResult run_step_case(const StepCase& which, const RunOptions& options,
                             const StepCaseDriver& driver = {});

}  // namespace plumb::cases
