// SPDX-License-Identifier: Apache-2.0
#include "decode/watch/step_case_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cases/drivers/platform_share.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

// Owner of the op's kernel. "" if `op` is not an op, or without a plug-in.
std::string owner_of(const std::string& op, const std::string& platform, const StepPlugin* steps) {
  if (steps == nullptr) return "";
  if (steps->find(op)) return "plug-in " + steps->plugin->name;
  return device::find_entry(device::builtin_implementation(platform), op) ? "plumb's own" : "";
}

// Example: "plug-in fast; layer 1 attention".
std::string owned_call(const Finding& finding, const std::string& owner) {
  if (finding.call.empty() || finding.call == finding.op) return owner;
  return owner + (owner.empty() ? "" : "; ") + finding.call;
}

// Example: "mhc_post (plug-in fast; layer 1 attention)", or the op alone.
std::string place_of(const Finding& finding, const std::string& owner) {
  const std::string more = owned_call(finding, owner);
  return finding.op + (more.empty() ? "" : " (" + more + ")");
}

Failure failure_of(const ServedCase& served, const WatchResult& watched, const StepPlugin* steps) {
  Failure failure;
  failure.context = fmt::format("step {}: {}, {}", watched.findings.front().step,
                                text_of(served.shape), device::decode::name_of(served.setup.mode));
  for (const Finding& finding : watched.findings) {
    const std::string place = place_of(finding, owner_of(finding.op, served.setup.platform, steps));
    std::string line = fmt::format("{}{}: {}", place.empty() ? "" : place + ": ",
                                   name_of(finding.detector), finding.text);
    // Target and drafter may give equal lines.
    if (!failure.lines.empty() && failure.lines.back() == line) continue;
    failure.lines.push_back(std::move(line));
  }
  return failure;
}

// Watches the steps, and notes whether a step called an op of the plug-in.
WatchedCase watch_plugin(const ServedCase& served, const StepPlugin& steps,
                         const StepHook& hook = {}) {
  bool called = false;
  WatchedCase watched{watch(served.setup, served.shape, [&](const WatchedStep& step) {
    if (hook) hook(step);
    if (!step.findings.all().empty()) return;  // some parts may not have run
    for (const device::decode::StepPart& part : step.parts) {
      for (const auto& call : step.twin.recorder->enqueued(part)) {
        called |= steps.find(std::string(call->op)) != nullptr;
      }
    }
  })};
  const std::string unsupported = steps.take_unsupported();
  if (!unsupported.empty()) {
    throw NotOnThisPlatform(fmt::format("{} does not support a call of {} in this step",
                                        steps.plugin->name, unsupported));
  }
  if (!called && watched.result.clean() && steps.left_out.empty()) {
    throw NotOnThisPlatform(fmt::format("the step calls no op that {} has", steps.plugin->name));
  }
  return watched;
}

void watch_case(const ServedCase& served, const StepCaseDriver& driver, const StepPlugin* steps,
                bool digests_calls, StepCaseResult& one) {
  const StepHook hook = [&](const WatchedStep& step) {
    if (digests_calls) add_digests(step, one.digests);
  };
  const WatchedCase watched =
      steps ? watch_plugin(served, *steps, hook) : driver.watch(served, hook);
  CaseResult& result = one.result;
  result.points = 1;
  result.launches = watched.result.steps;
  result.comparisons = watched.result.calls_judged;
  one.features = watched.result.features;
  if (watched.result.clean()) return;
  result.failures.push_back(failure_of(served, watched.result, steps));
  result.diagnosis = watched.diagnosis;
  one.findings = watched.result.findings;
}

// Reason why the platform cannot run the case; "" if it can.
std::string why_skipped(const StepCase& which, const std::string& platform) {
  const std::string unavailable = device::why_unavailable(platform);
  if (!unavailable.empty()) return unavailable;
  const bool simulated = device::open_device(platform)->properties().simulated;
  return which.row.real_only && simulated
             ? "this row is for real devices: it takes too long on the simulator"
             : "";
}

// Of the platforms that run the same kernels, one keeps all steps of the schedule; which one it is
// depends on the case. On the others the schedule is halved. False: it was halved.
bool keep_share(const StepCase& which, const RunOptions& options, ScheduleShape& shape) {
  constexpr std::int64_t kLeast = 2;
  if (!options.divides_schedules || shape.steps <= kLeast) return true;
  if (share_of(options.platform).has(seed_of(which.id()))) return true;
  shape.steps = std::max((shape.steps + 1) / 2, kLeast);
  return false;
}

// Adds a failure if the steps never did what the row is named for.
void require_features(const Row& row, StepCaseResult& one) {
  std::vector<std::string> missing = missing_features(row, one.features);
  if (missing.empty() || !one.result.failures.empty()) return;
  one.result.failures.push_back({"what the row is named for", std::move(missing), {}, "never"});
}

}  // namespace

const device::OpEntry* StepPlugin::find(const std::string& op) const {
  return left_out.contains(op) ? nullptr : device::find_entry(*plugin, op);
}

void put_in(const StepPlugin& plugin, DecodeSetup& setup) {
  if (setup.implementation) {
    throw NotOnThisPlatform("the planted kernel is missing in the process of a plug-in");
  }
  setup.implementation = [both = std::make_shared<const device::Implementation>(
                              plugin.with_own(setup.platform, plugin.left_out))](
                             std::string_view, bool) -> const device::Implementation& {
    return *both;
  };
  setup.conditions.checked = false;
  // The plug-in's device replaces the device of this process.
  setup.wrap = [open = plugin.open_device, conditions = setup.conditions,
                wrap = setup.wrap](std::unique_ptr<device::Device> here) {
    auto there = open(here->properties().platform, conditions);
    return wrap ? wrap(std::move(there)) : std::move(there);
  };
}

WatchResult watch_with(const StepPlugin& plugin, DecodeSetup setup, const ScheduleShape& shape) {
  put_in(plugin, setup);
  WatchResult result = watch_plugin({.setup = setup, .shape = shape}, plugin).result;
  for (Finding& finding : result.findings) {
    finding.call = owned_call(finding, owner_of(finding.op, setup.platform, &plugin));
  }
  return result;
}

StepCaseResult run_step_case(const StepCase& which, const RunOptions& options,
                             const StepCaseDriver& driver, const StepPlugin* plugin) {
  StepCaseResult one;
  CaseResult& result = one.result;
  result.id = which.id();
  result.platform = options.platform;
  result.reason = why_skipped(which, options.platform);
  if (!result.reason.empty()) {
    result.outcome = Outcome::skipped;
    return one;
  }
  const auto start = std::chrono::steady_clock::now();
  try {
    ServedCase served = driver.serve(which, options.platform, options.seed);
    if (plugin != nullptr) put_in(*plugin, served.setup);
    const bool whole = keep_share(which, options, served.shape);
    watch_case(served, driver, plugin, options.digests_calls && whole, one);
    if (whole && !one.features.empty()) require_features(which.row, one);
    settle(which.row, result);
  } catch (const NotOnThisPlatform& why) {
    result.outcome = Outcome::skipped;
    result.reason = why.what();
  } catch (const std::invalid_argument& why) {  // a mode that the model does not support
    result.outcome = Outcome::skipped;
    result.reason = why.what();
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  result.phases.device = taken.count();
  return one;
}

}  // namespace plumb::cases
