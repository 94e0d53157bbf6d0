// SPDX-License-Identifier: Apache-2.0
#include "cases/decode/twice.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <utility>

#include "cases/decode/environment.h"
#include "cases/decode/fresh_checks.h"
#include "cases/decode/traced_step.h"
#include "cases/judge.h"

namespace plumb::cases {

namespace {

using device::Order;
using device::Policy;
using Schedule = std::vector<ScheduledStep>;

constexpr std::pair<Order, const char*> kOrders[] = {{Order::forward, "threads in their order"},
                                                     {Order::reverse, "threads in reverse order"},
                                                     {Order::random, "threads in random order"}};
constexpr std::pair<Policy, const char*> kPolicies[] = {
    {Policy::early, "streams as early as they may"},
    {Policy::late, "streams as late as they may"},
    {Policy::interleaved, "streams late and interleaved"}};

// One run, step by step.
class Run {
 public:
  Run(DecodeSetup setup, SecondRun::Engine how)
      : setup_(std::move(setup)), how_(how), engine_(make(setup_)) {}

  void take(const ScheduledStep& scheduled) {
    let_requests_change(scheduled, engine_->engine);
    if (how_ == SecondRun::Engine::renewed) return renew(scheduled);
    disturb(scheduled, setup_.environment, *engine_);
    engine_->taps->poison(engine_->engine.stream());
    if (how_ == SecondRun::Engine::eager) return engine_->engine.step_eagerly(scheduled.batch);
    engine_->engine.step(scheduled.batch);
  }

  TracedStep wait_and_trace() {
    WatchedEngine& last = fresh_ ? *fresh_ : *engine_;
    last.device->synchronize();
    TracedStep step = trace(last);
    if (!fresh_) return step;
    // What comes next is made from here.
    engine_->engine.step(pending_.batch);
    engine_->device->synchronize();
    fresh_.reset();
    return step;
  }

 private:
  std::unique_ptr<WatchedEngine> make(const DecodeSetup& setup) const {
    auto engine = std::make_unique<WatchedEngine>(setup, Taps::Kept::everything);
    if (how_ != SecondRun::Engine::eager) engine->engine.capture();
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
  const SecondRun::Engine how_;
  std::unique_ptr<WatchedEngine> engine_, fresh_;
  ScheduledStep pending_;
};

const TracedTensor* different(const TracedCall& a, const TracedCall& b, bool input) {
  for (std::size_t i = 0; i < a.tensors.size() && i < b.tensors.size(); ++i) {
    if (a.tensors[i].input == input && a.tensors[i].rows != b.tensors[i].rows) return &a.tensors[i];
  }
  return nullptr;
}

std::vector<std::int64_t> different_rows(const TracedTensor& a, const TracedCall& b) {
  std::vector<std::int64_t> rows;
  for (const TracedTensor& other : b.tensors) {
    if (other.name != a.name) continue;
    for (std::size_t row = 0; row < a.rows.size(); ++row) {
      const bool same = row < other.rows.size() && other.rows[row] == a.rows[row];
      if (!same) rows.push_back(static_cast<std::int64_t>(row));
    }
  }
  return rows;
}

// Two runs of one step.
class StepComparison {
 public:
  StepComparison(const TracedStep& a, const TracedStep& b, std::int64_t step)
      : a_(a), b_(b), step_(step) {}

  std::optional<Difference> first() {
    for (std::size_t i = 0; i < a_.calls.size() && i < b_.calls.size(); ++i) {
      const TracedCall &a = a_.calls[i], &b = b_.calls[i];
      if (a.name != b.name || a.op != b.op) {
        return Difference{Difference::From::nothing,
                          step_,
                          static_cast<std::int64_t>(i),
                          a.part,
                          a.name,
                          a.op,
                          "",
                          {},
                          0,
                          b.name};
      }
      if (const TracedTensor* output = different(a, b, false)) return describe(i, *output);
      for (const TracedTensor& tensor : a.tensors) {
        if (!tensor.input) written_.insert(tensor.address);
      }
    }
    if (a_.results == b_.results) return std::nullopt;
    return Difference{.from = Difference::From::nothing, .step = step_};
  }

 private:
  Difference describe(std::size_t i, const TracedTensor& output) const {
    const TracedCall &a = a_.calls[i], &b = b_.calls[i];
    Difference found{a.deterministic ? Difference::From::the_op : Difference::From::an_op_that_may,
                     step_,
                     static_cast<std::int64_t>(i),
                     a.part,
                     a.name,
                     a.op,
                     output.name,
                     different_rows(output, b),
                     std::ssize(output.rows),
                     ""};
    // What earlier calls made is the same wherever they promise anything.
    for (std::size_t t = 0; t < a.tensors.size(); ++t) {
      const TracedTensor& input = a.tensors[t];
      if (!input.input || input.rows == b.tensors[t].rows) continue;
      if (written_.contains(input.address)) continue;
      found.from = Difference::From::its_inputs;
      found.input = input.name;
      return found;
    }
    return found;
  }

  const TracedStep &a_, &b_;
  std::int64_t step_;
  std::set<const std::byte*> written_;  // in this step, by calls that made the same
};

}  // namespace

std::vector<SecondRun> second_runs(const DecodeSetup& setup) {
  std::vector<SecondRun> all{{"the same once more", setup}};
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
  all.push_back({setup.environment.churns ? "nobody else uses the allocator"
                                          : "somebody else uses the allocator between steps",
                 setup});
  all.back().setup.environment.churns = !setup.environment.churns;
  if (setup.in_flight > 1) return all;  // these wait for every step
  if (setup.mode != device::decode::GraphMode::none) {
    all.push_back({"every step run eagerly on fresh state", setup, SecondRun::Engine::eager});
  }
  all.push_back({"every step taken by an engine made anew", setup, SecondRun::Engine::renewed});
  return all;
}

std::optional<Difference> first_difference(const DecodeSetup& setup, const SecondRun& second,
                                           const ScheduleShape& shape) {
  Run one(setup, SecondRun::Engine::kept), other(second.setup, second.engine);
  const Schedule schedule = make_schedule(shape, setup.geometry);
  for (std::size_t step = 0; step < schedule.size(); ++step) {
    one.take(schedule[step]);
    other.take(schedule[step]);
    const bool last = step + 1 == schedule.size() || !schedule[step + 1].admitted.empty();
    const auto in_flight = static_cast<std::size_t>(setup.in_flight);
    if (!last && (step + 1) % in_flight != 0) continue;
    const TracedStep a = one.wait_and_trace(), b = other.wait_and_trace();
    auto found = StepComparison(a, b, static_cast<std::int64_t>(step)).first();
    if (found) return found;
  }
  return std::nullopt;
}

std::string text_of(const Difference& d) {
  if (d.call.empty()) {
    return fmt::format("step {}: the results differ, and what each call made is the same", d.step);
  }
  const std::string where = fmt::format("step {}, {} ({})", d.step, d.op, d.call);
  if (d.tensor.empty()) return where + ": the second run calls " + d.input + " there";
  const std::string what = fmt::format("{}: {} differs in rows {} of {}", where, d.tensor,
                                       row_ranges(d.rows), d.rows_total);
  switch (d.from) {
    case Difference::From::the_op: return what + ", on the same inputs";
    case Difference::From::an_op_that_may:
      return what + ", on the same inputs: the op does not promise the same bits";
    default: break;
  }
  return fmt::format("{}; it was given another {}, which no call of the step has made", what,
                     d.input);
}

}  // namespace plumb::cases
