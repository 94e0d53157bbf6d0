// SPDX-License-Identifier: Apache-2.0
//
// Errors that the host half of a step can make with graphs. Each is a policy in place of the right
// one.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "decode/policies/step_policies.h"

namespace plumb::cases {

struct WarmUpStateCaptured final : device::decode::CapturePolicy {
  Choice choose(const State& warm_up, const MakeState&) const override {
    return {warm_up, warm_up};
  }
};
struct PlannerHoisted final : device::decode::CapturePolicy {
  void before_capture(device::decode::AttentionState& captured, const RunStep& run) const override {
    run(captured);
  }
};
struct FreshStateFreed final : device::decode::CapturePolicy {
  Choice choose(const State& warm_up, const MakeState& make) const override {
    return {make(), warm_up};
  }
};
struct StateKept final : device::decode::CapturePolicy {
  State for_step(const State& before, const MakeState& make) const override {
    return before ? before : make();
  }
};
struct DeadReplays final : device::decode::CapturePolicy {
  void replay(device::Device&, device::GraphExec, device::Stream) const override {}
};

// Every result gets a new tensor.
struct FreshResult final : device::decode::BreakPolicy {
  void run(const device::decode::Segment& segment, const device::decode::StepContext& step,
           std::int64_t rows, device::CachingAllocator& memory) const override {
    const auto bytes = static_cast<std::size_t>(rows * segment.result_bytes);
    segment.return_at(memory.allocate(bytes, "fresh result"));
    segment.run(step);
  }
};
// The arguments of a bucket are freed after its capture, and those of the next bucket take their
// place.
class ArgumentsHeldWeakly final : public device::decode::BreakPolicy {
 public:
  Arguments hold(const Arguments& arguments) const override {
    *place_ = *arguments;
    return place_;
  }

 private:
  std::shared_ptr<device::decode::BreakArguments> place_ =
      std::make_shared<device::decode::BreakArguments>();
};

struct DrafterLeftOut final : device::decode::ModePolicy {
  using GraphMode = device::decode::GraphMode;
  GraphMode drafter(std::optional<GraphMode>, GraphMode) const override { return GraphMode::none; }
};
struct AutomaticWins final : device::decode::ModePolicy {
  using GraphMode = device::decode::GraphMode;
  GraphMode choose(std::optional<GraphMode>, GraphMode automatic) const override {
    return automatic;
  }
};

struct RowsFromTheDevice final : device::decode::ShapePolicy {
  std::int64_t rows(std::int64_t padded, const device::decode::StepInputs& inputs,
                    device::Device& device, device::Stream stream) const override {
    std::vector<std::uint8_t> padding(static_cast<std::size_t>(padded));
    device.copy(padding.data(), inputs.is_padding, padding.size(), stream);
    return std::count(padding.begin(), padding.end(), 0);
  }
};
struct SlicesOfTheData final : device::decode::ShapePolicy {
  using BatchDescriptor = device::decode::BatchDescriptor;
  BatchDescriptor key(const BatchDescriptor& padded,
                      const device::decode::StepPlan& plan) const override {
    BatchDescriptor key = padded;
    for (const std::int32_t length : plan.seq_lens) key.slice += length;
    return key;
  }
};

struct TransfersOnTheirOwn final : device::decode::TransferPolicy {
  device::Stream stream(device::Stream, device::Stream own) const override { return own; }
};

}  // namespace plumb::cases
