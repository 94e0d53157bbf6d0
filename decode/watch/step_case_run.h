// SPDX-License-Identifier: Apache-2.0
//
// Runs a case of decode steps: watches an engine that is set up as the row says, and decides the
// outcome.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"
#include "decode/schedule/decode_step.h"
#include "decode/watch/call_digests.h"
#include "decode/watch/watch.h"

namespace plumb::cases {

// The platform cannot run the case. The message is the reason.
struct NotOnThisPlatform : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A plug-in in decode steps: its kernels replace plumb's own, except those of the ops `left_out`.
// Ops that it lacks use plumb's kernels.
struct StepPlugin {
  const device::Implementation* plugin = nullptr;
  std::function<device::Implementation(std::string_view platform,
                                       const std::set<std::string>& left_out)>
      with_own;
  std::function<std::unique_ptr<device::Device>(std::string_view platform,
                                                const device::Conditions&)>
      open_device;
  // Op of a legal call that the plug-in refused since the last query. "": none.
  std::function<std::string()> take_unsupported = [] { return std::string(); };
  std::set<std::string> left_out = {};

  const device::OpEntry* find(const std::string& op) const;  // nullptr: plumb's kernel runs
};
// Throws NotOnThisPlatform if the setup has a planted kernel: that is in another process.
void put_in(const StepPlugin& plugin, DecodeSetup& setup);

// Watches steps with the plug-in's kernels. `call` of a finding begins with the owner of its op.
// Throws NotOnThisPlatform if the steps call no op of the plug-in (unless some are left out), or if
// it refuses a call.
WatchResult watch_with(const StepPlugin& plugin, DecodeSetup setup, const ScheduleShape& shape);

struct StepCaseResult {
  CaseResult result;
  std::vector<Finding> findings;  // for machine-readable reports
  FeatureCounts features = {};    // counts of what the steps did
  // Of a clean run of the whole schedule, if the options ask for them.
  CallDigests digests = {};
};

struct WatchedCase {
  WatchResult result;
  std::string diagnosis = {};  // one line: what the failure looks like
};

// How a case is set up and watched. Faults and their diagnosis replace these functions.
struct StepCaseDriver {
  // Throws BadRow; NotOnThisPlatform or std::invalid_argument if the case is to be skipped.
  std::function<ServedCase(const StepCase& which, const std::string& platform, std::uint64_t seed)>
      serve = [](const StepCase& which, const std::string& platform, std::uint64_t seed) {
        return served_case(which, DecodeSetup{.platform = platform}, seed);
      };
  // Calls the hook after each step.
  std::function<WatchedCase(const ServedCase& served, const StepHook& hook)> watch =
      [](const ServedCase& served, const StepHook& hook) {
        return WatchedCase{cases::watch(served.setup, served.shape, hook)};
      };
};

// Uses platform, seed, divides_schedules and digests_calls of the options. With `plugin`, a finding
// names the owner of its op. A case that calls no op of the plug-in, or a call that it refuses, is
// skipped.
StepCaseResult run_step_case(const StepCase& which, const RunOptions& options,
                             const StepCaseDriver& driver = {}, const StepPlugin* plugin = nullptr);

}  // namespace plumb::cases
