// SPDX-License-Identifier: Apache-2.0
//
// Errors of V3.2's metadata builder. Each is a policy in place of the right one.
#pragma once

#include <functional>
#include <utility>

#include "decode/policies/v32_policies.h"

namespace plumb::cases {

// A plan key that ignores some values of the step, so steps that differ only in these values share
// a plan.
class ForgettingKey final : public device::decode::PlanKeyPolicy {
 public:
  using Forget = std::function<void(device::decode::KeyedStep&)>;
  explicit ForgettingKey(Forget forget) : forget_(std::move(forget)) {}
  Key key(const device::decode::KeyedStep& step) const override {
    device::decode::KeyedStep less = step;
    forget_(less);
    return PlanKeyPolicy::key(less);
  }

 private:
  Forget forget_;
};
inline void forget_lengths(device::decode::KeyedStep& step) { step.lengths.clear(); }
inline void forget_query_lens(device::decode::KeyedStep& step) { step.query_lens.clear(); }
// AITER's key has no query lengths, so these are forgotten too.
inline void forget_longest(device::decode::KeyedStep& step) {
  forget_query_lens(step);
  step.max_query_len = 0;
}
inline void forget_tokens(device::decode::KeyedStep& step) {
  forget_query_lens(step);
  step.tokens = 0;
}
// The key has the sum of the lengths: steps with different lengths and equal sums share a plan.
inline void sum_lengths(device::decode::KeyedStep& step) {
  std::int32_t sum = 0;
  for (const std::int32_t length : step.lengths) sum += length;
  step.lengths = {sum};
}

class NeverTheSameKey final : public device::decode::PlanKeyPolicy {
 public:
  Key key(const device::decode::KeyedStep&) const override { return {++steps_}; }

 private:
  mutable std::int64_t steps_ = 0;
};

// All steps have the key of the first step, so its plan is kept.
struct FrozenKey final : device::decode::PlanKeyPolicy {
  Key key(const device::decode::KeyedStep&) const override { return {}; }
};

struct PlanOfEarlierRanges final : device::decode::PlanKeyPolicy {
  bool plans_earlier_ranges() const override { return true; }
};

// One builder for each number of tokens. All builders write the same set of buffers.
struct BuilderOfEachSize final : device::decode::PlanKeyPolicy {
  std::int64_t builder(const device::decode::StepPlan& plan) const override { return plan.tokens; }
};

struct UnknownExtents final : device::decode::PagedBufferPolicy {
  Extents extents(const device::decode::StepPlan&) const override { return Extents::unknown; }
};
// The code for padded steps does not store how far it reached.
struct ExtentsLostWithPadding final : device::decode::PagedBufferPolicy {
  Extents extents(const device::decode::StepPlan& plan) const override {
    return plan.tokens > plan.live_tokens ? Extents::lost : Extents::kept;
  }
};
struct BuffersNotInitialised final : device::decode::PagedBufferPolicy {
  bool initialises() const override { return false; }
};
struct IndptrOfLiveRows final : device::decode::PagedBufferPolicy {
  bool ends_dead_rows(const device::decode::StepPlan&) const override { return false; }
};

}  // namespace plumb::cases
