// SPDX-License-Identifier: Apache-2.0
//
// Runs a case of decode steps: serves what its row says, under watch, and settles the outcome.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"
#include "decode/schedule/decode_step.h"
#include "decode/watch/watch.h"

namespace plumb::cases {

// The platform cannot have what a case asks for. The message is the reason.
struct NotOnThisPlatform : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A plug-in in the steps: its kernels take the place of plumb's own, which stand in for the ops
// that it does not have.
struct StepPlugin {
  const device::Implementation* plugin = nullptr;
  std::function<const device::Implementation&(std::string_view platform)> with_own;
  std::function<std::unique_ptr<device::Device>(std::string_view platform,
                                                const device::Conditions&)>
      open_device;
  // The op of a legal call that the plug-in has not supported since the last time. "": none.
  std::function<std::string()> take_unsupported = [] { return std::string(); };
};
// Throws NotOnThisPlatform if a kernel of the setup is a planted one: it is in another process.
void put_in(const StepPlugin& plugin, DecodeSetup& setup);

// Watches steps with the plug-in's kernels. `call` of a finding names the owner of its op first.
// Throws NotOnThisPlatform: the steps call no op that the plug-in has, or it does not support a
// call.
WatchResult watch_with(const StepPlugin& plugin, DecodeSetup setup, const ScheduleShape& shape);

struct StepCaseResult {
  CaseResult result;
  std::vector<Finding> findings;  // the failure for machines
  FeatureCounts features = {};    // what its steps did
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

// Of the options, platform, seed and divides_schedules count. With `plugin`, a finding names the
// owner of its op. A case that calls no op of the plug-in, or one that it does not support, is
// skipped.
StepCaseResult run_step_case(const StepCase& which, const RunOptions& options,
                             const StepCaseDriver& driver = {}, const StepPlugin* plugin = nullptr);

}  // namespace plumb::cases
