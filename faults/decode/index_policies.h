// SPDX-License-Identifier: Apache-2.0
//
// What the indexer can get wrong about what it keeps and plans from, each as a policy in place of
// the right one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "decode/engine/step_inputs.h"
#include "decode/policies/index_policy.h"

namespace plumb::cases {

using device::decode::IndexPolicy;
using device::decode::PlannerLengths;
using device::decode::PlannerSource;
using device::decode::ScheduledLengths;

struct ScheduleKeptForAShape final : IndexPolicy {
  bool keeps(const device::decode::ScheduledShape& made_for,
             const device::decode::ScheduledShape& now) const override {
    return made_for == now;
  }
};

// Its planner gets lengths of this kind.
template <class Lengths>
struct ScheduleFrom final : IndexPolicy {
  std::unique_ptr<PlannerLengths> planner_lengths() const override {
    return std::make_unique<Lengths>();
  }
};
struct LengthsInTokens final : PlannerLengths {
  ScheduledLengths choose(const PlannerSource& step, const ScheduledLengths& scored) override {
    return {step.inputs.seq_lens, {scored.shape.requests, 1}};
  }
};
struct LengthsNotPacked final : PlannerLengths {
  ScheduledLengths choose(const PlannerSource& step, const ScheduledLengths& scored) override {
    return {step.inputs.state_lens, scored.shape};
  }
};
class LengthsOfTheStepBefore final : public PlannerLengths {
 public:
  ScheduledLengths choose(const PlannerSource& step, const ScheduledLengths& scored) override {
    const std::size_t all = bytes_of(step.most);
    if (planned_ == nullptr) {
      planned_ = step.temporaries.allocate(all, "lengths of the step before");
      latest_ = step.temporaries.allocate(all, "lengths of the latest step");
      step.device.fill(latest_, 0, all, step.stream);
    }
    step.device.copy(planned_, latest_, all, step.stream);
    step.device.copy(latest_, scored.lens, bytes_of(scored.shape.requests * scored.shape.next_n),
                     step.stream);
    return {static_cast<const std::int32_t*>(planned_), scored.shape};
  }

 private:
  static std::size_t bytes_of(std::int64_t lengths) {
    return static_cast<std::size_t>(lengths) * sizeof(std::int32_t);
  }
  void *planned_ = nullptr, *latest_ = nullptr;  // freed with their allocator
};
struct ScheduleMoves final : IndexPolicy {
  bool keeps_its_address() const override { return false; }
};
struct KeysGatheredOnce final : IndexPolicy {
  bool gathers_keys(int layer) const override { return layer == 0; }
};

// Counts the weights from the first prompt, as the ranges of keys are counted.
struct WeightsOfPrompts final : IndexPolicy {
  std::int64_t first_weights(std::int64_t token, std::int64_t decodes) const override {
    return token - decodes;
  }
};

}  // namespace plumb::cases
