// SPDX-License-Identifier: Apache-2.0
//
// What V3.2's metadata builder can get wrong, each as a policy in place of the right one.
#pragma once

#include <functional>
#include <utility>

#include "decode/policies/v32_policies.h"

namespace plumb::cases {

// The right key of a step of which something is forgotten.
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
// Of AITER's key, which has no query lengths.
inline void forget_longest(device::decode::KeyedStep& step) {
  forget_query_lens(step);
  step.max_query_len = 0;
}
inline void forget_tokens(device::decode::KeyedStep& step) {
  forget_query_lens(step);
  step.tokens = 0;
}
// Equal totals collide.
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

// Of the first step: what was planned for it does for all.
struct FrozenKey final : device::decode::PlanKeyPolicy {
  Key key(const device::decode::KeyedStep&) const override { return {}; }
};

// A builder for each size, and one set of buffers for all.
struct BuilderOfEachSize final : device::decode::PlanKeyPolicy {
  std::int64_t builder(const device::decode::StepPlan& plan) const override { return plan.tokens; }
};

struct UnknownExtents final : device::decode::PagedBufferPolicy {
  Extents extents(const device::decode::StepPlan&) const override { return Extents::unknown; }
};
// The path of padded steps forgets to say how far it reached.
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
