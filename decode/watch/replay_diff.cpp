// SPDX-License-Identifier: Apache-2.0
#include "decode/watch/replay_diff.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "cases/judge/judge.h"
#include "decode/checks/compare.h"
#include "decode/checks/fresh_checks.h"
#include "decode/recording/step_writers.h"
#include "decode/schedule/environment.h"

namespace plumb::cases {

namespace {

using device::Order;
using device::Policy;
using device::decode::StepPart;
using Schedule = std::vector<ScheduledStep>;

constexpr std::string_view kBefore = "_before";

constexpr std::pair<Order, const char*> kOrders[] = {{Order::forward, "threads in their order"},
                                                     {Order::reverse, "threads in reverse order"},
                                                     {Order::random, "threads in random order"}};
constexpr std::pair<Policy, const char*> kPolicies[] = {
    {Policy::early, "streams as early as possible"},
    {Policy::late, "streams as late as possible"},
    {Policy::interleaved, "streams late and interleaved"}};

// Runs the steps of a schedule one by one.
class EngineRun {
 public:
  EngineRun(DecodeSetup setup, SecondRun::EngineUse how)
      : setup_(std::move(setup)), how_(how), engine_(make(setup_)) {}

  void take(const ScheduledStep& scheduled) {
    let_requests_change(scheduled, engine_->engine);
    if (how_ == SecondRun::EngineUse::renewed) return renew(scheduled);
    disturb(scheduled, setup_.environment, *engine_);
    engine_->recorder->poison(engine_->engine.stream());
    if (how_ == SecondRun::EngineUse::eager) return engine_->engine.step_eagerly(scheduled.batch);
    engine_->engine.step(scheduled.batch);
  }

  // Waits for the step and returns the engine whose recorder holds it.
  WatchedEngine& wait() {
    if (!fresh_) {
      engine_->device->synchronize();
      return *engine_;
    }
    fresh_->device->synchronize();
    // The old engine takes the step too: later steps start from its state.
    engine_->engine.step(pending_.batch);
    engine_->device->synchronize();
    return *fresh_;
  }

 private:
  std::unique_ptr<WatchedEngine> make(const DecodeSetup& setup) const {
    auto engine = std::make_unique<WatchedEngine>(setup, CallRecorder::Kept::everything);
    if (how_ != SecondRun::EngineUse::eager) engine->engine.capture();
    return engine;
  }

  void renew(const ScheduledStep& scheduled) {
    fresh_ = make(setup_);
    engine_->device->synchronize();
    adopt(*engine_, *fresh_);
    fresh_->engine.step(scheduled.batch);
    pending_ = scheduled;
  }

  const DecodeSetup setup_;
  const SecondRun::EngineUse how_;
  std::unique_ptr<WatchedEngine> engine_, fresh_;
  ScheduledStep pending_;
};

std::uint64_t digest(const HostTensor& tensor) {
  return XXH3_64bits(tensor.bytes().data(), tensor.bytes().size());
}

// Compares one step in two runs.
class StepComparison {
 public:
  StepComparison(WatchedEngine& one, WatchedEngine& other, std::int64_t step)
      : one_(one), other_(other), step_(step) {}

  std::optional<ReplayDifference> first() {
    for (const StepPart& part : one_.engine.parts()) {
      if (part.kept) continue;  // the other run may have kept an earlier plan
      if (auto found = first_of(part)) return found;
    }
    if (live_results(one_) == live_results(other_)) return std::nullopt;
    return ReplayDifference{.from = ReplayDifference::From::nothing, .step = step_};
  }

 private:
  std::optional<ReplayDifference> first_of(const StepPart& part) {
    const auto& plan = one_.engine.plan();
    const TokenRows defined{part.tokens, std::min(plan.attended, part.tokens)};
    StepPart there = part;
    for (const StepPart& same : other_.engine.parts()) {
      if (same.name == part.name) there = same;
    }
    const std::int64_t rows = rows_of(one_, part), rows_there = rows_of(other_, there);
    if (rows != rows_there) return other_rows(part, rows, rows_there);
    if (rows != part.tokens) return std::nullopt;  // the part of this step did not run
    const CallRecorder::Calls &a = one_.recorder->fetch(part), &b = other_.recorder->fetch(there);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (i >= b.size() || a[i]->place.name != b[i]->place.name) return another_call(*a[i], part);
      auto report = different_output(*b[i], *a[i], defined, "differs");
      if (report) return describe(*a[i], *b[i], part, *report);
      writers_.note(*a[i], std::ssize(made_));
      made_.push_back(a[i].get());
    }
    return std::nullopt;
  }

  // Rows that a part ran on. They differ if another part than the step's own was enqueued.
  static std::int64_t rows_of(const WatchedEngine& watched, const StepPart& part) {
    const auto enqueued = watched.recorder->latest(part.name);
    return !part.replayed && enqueued ? enqueued->tokens : part.tokens;
  }

  ReplayDifference other_rows(const StepPart& part, std::int64_t rows, std::int64_t there) const {
    return {.from = ReplayDifference::From::nothing,
            .step = step_,
            .part = part.name,
            .input =
                fmt::format("{} runs on {} rows, in the second run on {}", part.name, rows, there)};
  }

  ReplayDifference another_call(const CallRecorder::CallRecording& call,
                                const StepPart& part) const {
    return {.from = ReplayDifference::From::nothing,
            .step = step_,
            .part = part.name,
            .call = call.place.name,
            .op = call.op};
  }

  ReplayDifference describe(const CallRecorder::CallRecording& a,
                            const CallRecorder::CallRecording& b, const StepPart& part,
                            TensorReport& report) const {
    const bool may = a.entry != nullptr && a.declared.deterministic == 0;
    ReplayDifference found{
        .from = may ? ReplayDifference::From::an_op_that_may : ReplayDifference::From::the_op,
        .step = step_,
        .part = part.name,
        .call = a.place.name,
        .op = a.op,
        .tensor = report.tensor,
        .rows = std::move(report.wrong_rows),
        .rows_total = report.rows_total,
        .input = given(a, b)};
    found.digests[0] = digest(a.tensors.at(found.tensor));
    found.digests[1] = digest(b.tensors.at(found.tensor));
    if (!found.input.empty()) found.from = ReplayDifference::From::its_inputs;
    for (const CallRecorder::CallRecording* call : {&a, &b}) {
      const std::string both = overlap(*call);
      if (!found.input.empty() || both.empty()) continue;
      found.from = ReplayDifference::From::its_memory;
      found.input = both;
    }
    return found;
  }

  // Names an output that overlaps an input, except a tensor that the op changes in place.
  static std::string overlap(const CallRecorder::CallRecording& call) {
    for (const CallRecorder::TensorCopy& in : call.copies) {
      for (const CallRecorder::TensorCopy& out : call.copies) {
        const bool apart = in.from + in.bytes <= out.from || out.from + out.bytes <= in.from;
        if (!in.before || out.before || apart) continue;
        if (in.tensor == out.tensor + std::string(kBefore)) continue;
        return out.tensor + " and " + in.tensor;
      }
    }
    return "";
  }

  // Names an input that differs and was not written by a call of the step. (Outputs of calls are
  // equal wherever the op promises them.) The old contents of an in-place tensor are not an input.
  std::string given(const CallRecorder::CallRecording& a,
                    const CallRecorder::CallRecording& b) const {
    for (const CallRecorder::TensorCopy& copy : a.copies) {
      if (!copy.before || copy.tensor.ends_with(kBefore)) continue;
      const Bytes& bytes = a.tensors.at(copy.tensor).bytes();
      const Bytes& there = b.tensors.at(copy.tensor).bytes();
      if (bytes != there && !is_made(copy, bytes)) return copy.tensor;
    }
    return "";
  }

  // Whether the latest call that wrote there wrote all of these bytes, unchanged since.
  bool is_made(const CallRecorder::TensorCopy& input, const Bytes& bytes) const {
    const StepWriters::Writer* const writer = writers_.latest(input.from);
    if (writer == nullptr) return false;
    const CallRecorder::CallRecording& made = *made_.at(static_cast<std::size_t>(writer->position));
    for (const CallRecorder::TensorCopy& output : made.copies) {
      if (output.before || output.from != writer->range.begin) continue;
      if (made.tensors.contains(output.tensor + std::string(kBefore))) return false;
      const Bytes& then = made.tensors.at(output.tensor).bytes();
      const auto offset = std::min(input.from - output.from, std::ssize(then));
      const auto count = std::min(std::ssize(then) - offset, std::ssize(bytes));
      return std::equal(bytes.begin(), bytes.begin() + count, then.begin() + offset);
    }
    return true;
  }

  WatchedEngine &one_, &other_;
  std::int64_t step_;
  StepWriters writers_;                                   // of one_'s step
  std::vector<const CallRecorder::CallRecording*> made_;  // one_'s calls with equal outputs
};

}  // namespace

std::vector<SecondRun> second_runs(const DecodeSetup& setup) {
  std::vector<SecondRun> all{{"no change", setup}};
  if (!device::open_device(setup.platform)->properties().simulated) return all;
  for (const auto& [order, name] : kOrders) {
    if (order == setup.conditions.order) continue;
    all.push_back({name, setup});
    all.back().setup.conditions.order = order;
  }
  for (const auto& [policy, name] : kPolicies) {
    if (policy == setup.conditions.policy) continue;
    all.push_back({name, setup});
    all.back().setup.conditions.policy = policy;
  }
  all.push_back({setup.environment.churns ? "no other work in the allocator"
                                          : "other work in the allocator between steps",
                 setup});
  all.back().setup.environment.churns = !setup.environment.churns;
  if (setup.in_flight > 1) return all;  // the runs below wait for every step
  if (setup.mode != device::decode::GraphMode::none) {
    all.push_back({"every step run eagerly on fresh state", setup, SecondRun::EngineUse::eager});
  }
  all.push_back({"a new engine for every step", setup, SecondRun::EngineUse::renewed});
  return all;
}

std::optional<ReplayDifference> first_difference(const DecodeSetup& setup, const SecondRun& second,
                                                 const ScheduleShape& shape) {
  EngineRun one(setup, SecondRun::EngineUse::kept), other(second.setup, second.engine);
  const Schedule schedule = make_schedule(shape, setup.geometry);
  for (std::size_t step = 0; step < schedule.size(); ++step) {
    one.take(schedule[step]);
    other.take(schedule[step]);
    const bool last = step + 1 == schedule.size() || !schedule[step + 1].admitted.empty();
    const auto in_flight = static_cast<std::size_t>(setup.in_flight);
    if (!last && (step + 1) % in_flight != 0) continue;
    auto found = StepComparison(one.wait(), other.wait(), static_cast<std::int64_t>(step)).first();
    if (found) return found;
  }
  return std::nullopt;
}

std::string text_of(const ReplayDifference& d) {
  if (d.call.empty() && !d.part.empty()) return fmt::format("step {}: {}", d.step, d.input);
  if (d.call.empty()) {
    return fmt::format("step {}: the results differ, although every call gave the same outputs",
                       d.step);
  }
  const std::string where = fmt::format("step {}, {} ({})", d.step, d.op, d.call);
  if (d.tensor.empty()) return where + ": the second run makes another call there";
  const std::string what =
      fmt::format("{}: {} differs in {} (digests {:016x}, {:016x})", where, d.tensor,
                  rows_of(d.rows, d.rows_total), d.digests[0], d.digests[1]);
  switch (d.from) {
    case ReplayDifference::From::the_op: return what + ", on the same inputs";
    case ReplayDifference::From::an_op_that_may:
      return what + ", on the same inputs: the op does not promise the same bits";
    case ReplayDifference::From::its_memory: return what + "; its " + d.input + " share memory";
    default: break;
  }
  return fmt::format("{}; its input {} differs, and no call of the step wrote the difference", what,
                     d.input);
}

}  // namespace plumb::cases
