// SPDX-License-Identifier: Apache-2.0
#include "decode/watch/watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "decode/checks/cache_checks.h"
#include "decode/checks/call_checks.h"
#include "decode/checks/fresh_checks.h"
#include "decode/checks/input_checks.h"
#include "decode/checks/order_checks.h"
#include "decode/checks/paged_buffers.h"
#include "decode/checks/replay_checks.h"
#include "decode/checks/requests/request_model.h"
#include "decode/checks/requests/written_entries.h"
#include "decode/checks/state_checks.h"
#include "decode/engine/no_free_block.h"
#include "decode/schedule/environment.h"

namespace plumb::cases {

namespace {

using device::decode::Architecture;
using device::decode::Padding;

// Values for the places where padding may hold anything: another token key, another existing block.
constexpr Padding kOtherPadding{0x5eed0123456789, 1};

// In scratch: a finite number, about 12 in bf16 and fp32. NaN would be wrong here: a kernel may
// load a value and multiply it by zero.
constexpr std::uint8_t kOverwritten = 0x41;

// A step enqueued before the watched one.
struct StepInFlight {
  device::decode::StepSegments::Parts parts;  // parts of the twin
  std::vector<PlannedInput> inputs;
};

class Watcher {
 public:
  explicit Watcher(const DecodeSetup& setup)
      : setup_(setup),
        mode_(setup.mode),
        in_flight_(setup.in_flight),
        plain_(setup),
        twin_(setup, CallRecorder::Kept::everything),
        eager_(setup, CallRecorder::Kept::everything),
        other_(setup, CallRecorder::Kept::rows),
        model_(setup.geometry),
        features_(setup.geometry) {
    eager_.recorder->when_filled([this](const device::decode::StepPart& part) {
      fills_.push_back({part.request, eager_.engine.plan()});
    });
    other_.recorder->overwrite_scratch(other_.engine.memory().blocks(), kOverwritten);
  }

  void capture() {
    for (WatchedEngine* watched : {&plain_, &twin_, &other_}) watched->engine.capture();
    memory_after_ = snapshot(twin_);
  }

  WatchResult run(const std::vector<ScheduledStep>& schedule, const StepHook& hook) {
    WatchResult result;
    for (auto next = schedule.begin(); next != schedule.end() && result.clean();) {
      const auto last = last_in_flight(next, schedule.end());
      result.steps += last - next + 1;
      WatchedStep step{plain_, twin_, eager_, other_, mode_, Findings(result.steps - 1)};
      try {
        take({next, last + 1}, step);
        result.calls_judged += check(step);
      } catch (const device::decode::NoFreeBlock& none) {
        note_wrong(model_.check_shortage(*(next + std::ssize(step.plans))), step);
        step.findings.add(Detector::error, step.calls, "", "", none.what());
      } catch (const device::decode::RefusedCall& refused) {
        step.findings.add(Detector::error, step.calls, refused.op, refused.op, refused.what());
      } catch (const std::exception& error) {
        step.findings.add(Detector::error, step.calls, "", "", error.what());
      }
      result.findings = step.findings.all();
      if (hook) hook(step);
      memory_before_ = std::move(step.before);
      memory_after_ = std::move(step.after);
      next = last + 1;
    }
    result.features = features_.counts();
    return result;
  }

 private:
  using Scheduled = std::vector<ScheduledStep>::const_iterator;

  // Last step that may be enqueued without a wait. A step with new requests needs a wait before it,
  // because filling their caches is not watched while a step is in flight.
  Scheduled last_in_flight(Scheduled first, Scheduled end) const {
    Scheduled last = first;
    const auto comes = [](const ScheduledStep& one) {
      return !one.admitted.empty() || !one.shared.empty();
    };
    while (last - first + 1 < in_flight_ && last + 1 != end && !comes(*(last + 1))) ++last;
    return last;
  }

  std::array<WatchedEngine*, 4> all() { return {&plain_, &twin_, &eager_, &other_}; }

  // Runs the steps. The last one is the watched step.
  void take(const std::vector<ScheduledStep>& scheduled, WatchedStep& step) {
    prepare(scheduled.front(), step);
    for (WatchedEngine* watched : all()) {
      if (watched->recorder) watched->recorder->poison(watched->engine.stream());
    }
    const bool renews = renews_at(step.findings.step());
    if (renews) fresh_ = fresh_results(scheduled.front(), setup_, plain_);
    step.before = snapshot(twin_, std::move(memory_before_));
    const auto unwritten = unwritten_entry(twin_, memory_after_, step.before, model_.take_writes());
    wrong_fill_ = unwritten ? unwritten : strayed_;
    earlier_.clear();
    for (const ScheduledStep& one : scheduled) {
      if (&one != &scheduled.front()) {
        remember(step);
        prepare(one, step);
      }
      follows_a_step_ = plans(plain_) == plans_;
      take_plain(one, step);
      plans_ = plans(plain_);
      delayed(twin_).step(one.batch, padding_of(taken_));
      eager_.engine.step_eagerly(one.batch, padding_of(taken_));
      overwrite_scratch(other_);
      delayed(other_).step(one.batch, kOtherPadding);
      step.plans.push_back(twin_.engine.plan());
      features_.note(one, twin_.engine.plan());
      add_parts(twin_.engine.parts(), step.parts);
      ++taken_;
    }
    for (WatchedEngine* watched : all()) watched->device->synchronize();
    step.after = snapshot(twin_, std::move(memory_after_));
    is_as_new_ = !renews || live_results(plain_) == fresh_;
  }

  // Checks the plan before the step's effects are checked, also if the step threw.
  void take_plain(const ScheduledStep& scheduled, WatchedStep& step) {
    try {
      delayed(plain_).step(scheduled.batch, padding_of(taken_));
    } catch (const std::exception&) {
      const device::decode::StepPlan& plan = plain_.engine.plan();
      if (plan.tokens > 0) note_wrong(model_.check(scheduled, plan), step);
      throw;
    }
    note_wrong(model_.check(scheduled, plain_.engine.plan()), step);
  }

  // Notes the first wrong plan only: one wrong part of the host makes later parts look wrong.
  static void note_wrong(const std::optional<WrongPlan>& wrong, WatchedStep& step,
                         std::int64_t position = 0) {
    const auto& all = step.findings.all();
    const bool is_first = std::ranges::none_of(
        all, [](const Finding& one) { return one.detector == Detector::history; });
    if (!wrong || !is_first) return;
    step.findings.add(Detector::history, position, wrong->part, wrong->part, wrong->text);
  }

  static void overwrite_scratch(WatchedEngine& watched) {
    for (const auto& block : watched.engine.memory().blocks()) {
      if (!block.scratch) continue;
      watched.device->fill(block.address, kOverwritten, block.bytes, watched.engine.stream());
    }
  }

  // Enqueues the slow kernel first, if the environment has one.
  device::decode::Engine& delayed(WatchedEngine& watched) const {
    if (setup_.environment.delays) delay(watched);
    return watched.engine;
  }

  // Plans made or kept so far. A step of padding between two steps counts too.
  static std::int64_t plans(const WatchedEngine& watched) {
    const device::decode::Counters counters = watched.engine.counters();
    return counters.plans_made + counters.plans_kept;
  }

  // Applies changes of requests before the step. The eager engine is not disturbed, because it
  // keeps nothing between steps; it fills the caches of new requests, and the others copy them.
  void prepare(const ScheduledStep& scheduled, WatchedStep& step) {
    fill(scheduled);
    note_wrong(model_.change(scheduled, fills_), step);
    for (WatchedEngine* watched : {&plain_, &twin_, &other_}) {
      let_requests_change(scheduled, eager_, *watched);
      disturb(scheduled, setup_.environment, *watched);
    }
  }

  // Lets requests come and go in the eager engine, from which the others copy. Its own memory is
  // compared around that: memory of two engines may differ where no entry is.
  void fill(const ScheduledStep& scheduled) {
    fills_.clear();
    strayed_.reset();
    const bool fills = !scheduled.admitted.empty() || !scheduled.shared.empty();
    if (fills) unfilled_ = snapshot(eager_, std::move(unfilled_));
    let_requests_change(scheduled, eager_.engine);
    if (!fills) return;
    filled_ = snapshot(eager_, std::move(filled_));
    std::vector<device::decode::StepPlan> plans;
    for (const CacheFill& one : fills_) plans.push_back(one.plan);
    const auto strayed = strayed_fill(eager_, unfilled_, filled_, plans);
    if (!strayed) return;
    strayed_ = WrongPlan{scheduled.shared.empty() ? "prompt" : "prefix hit", *strayed};
  }

  bool renews_at(std::int64_t step) const {
    const std::int64_t every = setup_.environment.fresh_every;
    return every > 0 && in_flight_ == 1 && (step + 1) % every == 0;
  }

  // Stores parts and inputs of the twin's latest step before the next one is enqueued.
  void remember(WatchedStep& step) {
    earlier_.push_back({twin_.engine.parts(), planned_inputs(twin_)});
    for (const auto& part : earlier_.back().parts) {
      for (const auto& call : twin_.recorder->enqueued(part)) step.writers.note(*call, 0);
    }
  }

  // Checks inputs of earlier steps in flight. Parts that ran again in a later step belong to the
  // later step.
  void check_earlier(WatchedStep& step) {
    auto later = twin_.engine.parts();
    for (auto one = earlier_.rbegin(); one != earlier_.rend(); ++one) {
      for (const auto& part : one->parts) {
        if (part.varies || std::find(later.begin(), later.end(), part) != later.end()) continue;
        for (const auto& call : twin_.recorder->fetch(part))
          check_inputs_of(*call, one->inputs, step);
      }
      later.insert(later.end(), one->parts.begin(), one->parts.end());
    }
  }

  // Returns the number of calls judged.
  std::int64_t check(WatchedStep& step) {
    check_inputs(step);
    check_earlier(step);
    if (!check_ran(step)) return 0;
    check_paged_buffers(step);
    const std::int64_t judged = check_calls(step);
    check_order(step);
    check_state(step);
    check_caches(step);
    check_written(step);
    check_twin(step);
    check_path(step);
    check_cost(step);
    if (!is_as_new_) {
      step.findings.add(Detector::fresh, step.calls, "", "", "a new engine gives other results");
    }
    if (follows_a_step_) check_kept_plan(before_, step);
    before_ = step.plans.back();
    return judged;
  }

  // Notes a wrong fill before the step, or an entry that the step has not written. The finding
  // comes behind those of the calls: if one is wrong, or an input, that is the cause.
  void check_written(WatchedStep& step) {
    std::optional<WrongPlan> by_step =
        unwritten_entry(twin_, step.before, step.after, model_.take_writes());
    note_wrong(wrong_fill_ ? wrong_fill_ : by_step, step, step.calls);
  }

  // Runs first, because layers on wrong metadata may not be judgeable.
  static void check_paged_buffers(WatchedStep& step) {
    const WatchedEngine& twin = step.twin;
    if (twin.engine.geometry().architecture != Architecture::v32) return;
    for (WrongBuffer& wrong : wrong_paged_buffers(twin.engine, *twin.device)) {
      step.findings.add(Detector::metadata, 0, std::move(wrong.op), std::move(wrong.call),
                        std::move(wrong.text));
    }
  }

  const DecodeSetup& setup_;
  device::decode::GraphMode mode_;
  std::int64_t in_flight_;
  WatchedEngine plain_, twin_, eager_, other_;
  Snapshot memory_before_, memory_after_;  // of the step before
  RequestModel model_;
  Snapshot unfilled_, filled_;           // of the eager engine around fills
  std::vector<CacheFill> fills_;         // fills for requests that came before this step
  std::optional<WrongPlan> strayed_;     // a write of theirs beside their entries
  std::optional<WrongPlan> wrong_fill_;  // an entry that they have not written, or strayed_
  FeatureCounter features_;
  std::vector<StepInFlight> earlier_;
  std::vector<std::byte> fresh_;  // results of a newly created engine
  bool is_as_new_ = true;
  std::optional<device::decode::StepPlan> before_;  // of the latest step that was checked
  std::int64_t taken_ = 0;                          // steps
  std::int64_t plans_ = -1;                         // plans() of the plain engine
  bool follows_a_step_ = false;  // no plan was made between the step before and this one
};

}  // namespace

bool WatchResult::found_by(Detector detector) const {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.detector == detector; });
}

namespace {

WatchResult failed_capture(std::string op, std::string why) {
  WatchResult result;
  result.findings.push_back({Detector::error, 0, 0, std::move(op), "capture", std::move(why)});
  return result;
}

}  // namespace

WatchResult watch(const DecodeSetup& setup, const ScheduleShape& shape, const StepHook& hook) {
  std::unique_ptr<Watcher> watcher;
  try {
    watcher = std::make_unique<Watcher>(setup);
    watcher->capture();
  } catch (const device::decode::RefusedCall& refused) {
    return failed_capture(refused.op, refused.what());
  } catch (const std::exception& error) {
    return failed_capture("capture", error.what());
  }
  return watcher->run(make_schedule(shape, setup.geometry), hook);
}

}  // namespace plumb::cases
