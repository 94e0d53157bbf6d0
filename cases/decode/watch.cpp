// SPDX-License-Identifier: Apache-2.0
#include "cases/decode/watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cases/decode/cache_checks.h"
#include "cases/decode/call_checks.h"
#include "cases/decode/input_checks.h"
#include "cases/decode/paged_buffers.h"
#include "cases/decode/replay_checks.h"
#include "cases/decode/state_checks.h"

namespace plumb::cases {

namespace {

using device::decode::Architecture;
using device::decode::Padding;

// Where padding may hold anything: any key, and any block that exists.
constexpr Padding kOtherPadding{0x5eed0123456789, 1};

class Watcher {
 public:
  explicit Watcher(const DecodeSetup& setup)
      : plain_(setup, false), twin_(setup, true), eager_(setup, true), other_(setup, true) {}

  void capture() {
    for (WatchedEngine* watched : {&plain_, &twin_, &other_}) watched->engine.capture();
  }

  WatchResult run(const std::vector<ScheduledStep>& schedule) {
    WatchResult result;
    for (const ScheduledStep& scheduled : schedule) {
      WatchedStep step{plain_, twin_, eager_, other_, Findings(result.steps)};
      try {
        take(scheduled, step);
        result.calls_judged += check(step);
      } catch (const std::exception& error) {
        step.findings.add(Detector::error, 0, "", "", error.what());
      }
      ++result.steps;
      result.findings = step.findings.all();
      if (!result.findings.empty()) break;
    }
    return result;
  }

 private:
  void take(const ScheduledStep& scheduled, WatchedStep& step) {
    const std::array<WatchedEngine*, 4> all{&plain_, &twin_, &eager_, &other_};
    for (WatchedEngine* watched : all) {
      for (const std::uint64_t id : scheduled.finished) watched->engine.finish(id);
      for (const auto& [id, tokens] : scheduled.admitted) watched->engine.admit(id, tokens);
      if (watched->taps) watched->taps->poison(watched->engine.stream());
    }
    step.before = snapshot(twin_);
    plain_.engine.step(scheduled.batch);
    twin_.engine.step(scheduled.batch);
    eager_.engine.step_eagerly(scheduled.batch);
    other_.engine.step(scheduled.batch, kOtherPadding);
    for (WatchedEngine* watched : all) watched->device->synchronize();
    step.after = snapshot(twin_);
  }

  // Returns how many calls were judged.
  static std::int64_t check(WatchedStep& step) {
    check_inputs(step);
    if (!check_ran(step)) return 0;
    check_paged_buffers(step);
    const std::int64_t judged = check_calls(step);
    check_state(step);
    check_caches(step);
    check_twin(step);
    check_path(step);
    return judged;
  }

  // First: what the layers make of wrong ones may be beyond judging.
  static void check_paged_buffers(WatchedStep& step) {
    const WatchedEngine& twin = step.twin;
    if (twin.engine.geometry().architecture != Architecture::v32) return;
    for (WrongBuffer& wrong : wrong_paged_buffers(twin.engine, *twin.device)) {
      step.findings.add(Detector::metadata, 0, std::move(wrong.op), std::move(wrong.call),
                        std::move(wrong.text));
    }
  }

  WatchedEngine plain_, twin_, eager_, other_;
};

}  // namespace

bool WatchResult::found_by(Detector detector) const {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.detector == detector; });
}

WatchResult watch(const DecodeSetup& setup, const ScheduleShape& shape) {
  std::unique_ptr<Watcher> watcher;
  try {
    watcher = std::make_unique<Watcher>(setup);
    watcher->capture();
  } catch (const std::exception& error) {
    WatchResult result;
    result.findings.push_back({Detector::error, 0, 0, "capture", "capture", error.what()});
    return result;
  }
  return watcher->run(make_schedule(shape, setup.geometry));
}

}  // namespace plumb::cases
