// SPDX-License-Identifier: Apache-2.0
//
// The detectors of a decode step: a right step raises no alarm whatever happens to it, and each
// kind of fault is seen and put down to the op that is broken.
#include <gtest/gtest.h>

#include <algorithm>

#include "cases/decode/watch.h"
#include "cases/faults/faults.h"
#include "device/forwarding_device.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;

std::string text_of(const WatchResult& result) {
  std::string text;
  for (const Finding& finding : result.findings) {
    text += std::string(name_of(finding.detector)) + ", step " + std::to_string(finding.step) +
            ", " + finding.op + " (" + finding.call + "): " + finding.text + "\n";
  }
  return text;
}

std::string name_of_platform(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class CleanSteps : public testing::TestWithParam<std::string> {};

TEST_P(CleanSteps, RaiseNoAlarm) {
  DecodeSetup setup;
  setup.platform = GetParam();
  std::uint64_t seed = 1;
  for (const Traffic traffic : {Traffic::steady, Traffic::grow, Traffic::shrink,
                                Traffic::there_and_back, Traffic::permute, Traffic::replace}) {
    const auto lengths = static_cast<Lengths>(seed % 6);
    const ScheduleShape shape{traffic, lengths, 4, 4, seed++};
    const WatchResult result = watch(setup, shape);
    EXPECT_TRUE(result.clean()) << text_of(shape) << "\n" << text_of(result);
    EXPECT_EQ(result.steps, 4);
    EXPECT_GT(result.calls_judged, 200);
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, CleanSteps,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"), name_of_platform);

class WarmUpStateCaptured final : public device::decode::CapturePolicy {
 public:
  Choice choose(const State& warm_up, const MakeState&) const override {
    return {warm_up, warm_up};
  }
};

TEST(DecodeFaults, AStateKeptFromTheWarmUpIsPutDownToTheAttention) {
  DecodeSetup setup;
  setup.policies.capture = std::make_shared<WarmUpStateCaptured>();
  const WatchResult result = watch(setup, {Traffic::steady, Lengths::mixed, 4, 4, 1});
  ASSERT_FALSE(result.clean());
  EXPECT_TRUE(result.found_by(Detector::path)) << text_of(result);
  EXPECT_TRUE(result.found_by(Detector::eager)) << text_of(result);
  EXPECT_EQ(result.findings.front().op, "sparse_mla_decode") << text_of(result);
}

class DeadReplay final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  void replay(device::GraphExec, device::Stream) override {}
};

TEST(DecodeFaults, AReplayThatDoesNothingIsSeen) {
  DecodeSetup setup;
  setup.wrap = [](std::unique_ptr<device::Device> inner) -> std::unique_ptr<device::Device> {
    return std::make_unique<DeadReplay>(std::move(inner));
  };
  const WatchResult result = watch(setup, {Traffic::steady, Lengths::mixed, 4, 4, 1});
  ASSERT_FALSE(result.clean());
  EXPECT_TRUE(result.found_by(Detector::reference)) << text_of(result);
}

TEST(DecodeFaults, AMutantIsPutDownToItsOp) {
  for (const char* name :
       {"mhc_fused_comb_transposed", "swa_tail_not_cleared", "top_k_pads_with_zero",
        "k_cache_minus_one_is_slot_0", "mla_sink_per_split"}) {
    const auto mutant = std::find_if(all_mutants().begin(), all_mutants().end(),
                                     [&](const Mutant& m) { return m.name == name; });
    ASSERT_NE(mutant, all_mutants().end()) << name;
    DecodeSetup setup;
    const RunOptions broken = with_mutant(RunOptions{}, *mutant);
    setup.ops = &broken.implementation(setup.platform, false);
    const WatchResult result = watch(setup, {Traffic::random, Lengths::random, 6, 4, 1});
    ASSERT_FALSE(result.clean()) << name;
    EXPECT_TRUE(result.found_by(Detector::reference)) << text_of(result);
    EXPECT_EQ(result.findings.front().op, mutant->op) << name << "\n" << text_of(result);
  }
}

}  // namespace

}  // namespace plumb::cases
