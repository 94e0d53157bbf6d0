// SPDX-License-Identifier: Apache-2.0
//
// The reference replaces ops inside a decode step. A right step stays right whichever ops are
// replaced, and a broken op that is replaced does no harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "cases/tables/registry.h"
#include "decode/watch/exchange.h"
#include "decode/watch/watch.h"
#include "device/forwarding_device.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "faults/decode/fault_runs.h"

namespace plumb::cases {
namespace decode_exchange_test {

using device::decode::GraphMode;

std::set<std::string> every_op() {
  std::set<std::string> names;
  for (const OpDefinition& op : all_ops()) names.insert(std::string(op.name));
#define PLUMB_NAME(name) names.insert(#name);
  PLUMB_FOR_EACH_PLACEHOLDER(PLUMB_NAME)
#undef PLUMB_NAME
  return names;
}

DecodeSetup exchanged(DecodeSetup setup, std::set<std::string> names) {
  setup.exchanged = std::make_shared<const Exchanged>(std::move(names));
  return setup;
}

std::string text_of(const WatchResult& result) {
  std::string text;
  for (const Finding& finding : result.findings) {
    text += std::string(name_of(finding.detector)) + ", step " + std::to_string(finding.step) +
            ", " + finding.op + " (" + finding.call + "): " + finding.text + "\n";
  }
  return text;
}

void expect_clean(const DecodeSetup& setup, const ScheduleShape& shape) {
  const WatchResult result = watch(setup, shape);
  EXPECT_TRUE(result.clean()) << setup.platform << ", " << name_of(setup.mode) << "\n"
                              << text_of(result);
  EXPECT_EQ(result.steps, shape.steps);
}

class EveryMode : public testing::TestWithParam<GraphMode> {};

TEST_P(EveryMode, IsCleanWithEveryOpExchanged) {
  DecodeSetup setup;
  setup.mode = GetParam();
  setup.geometry = device::decode::small_geometry(4, 0, 48);
  setup.geometry.drafter = true;
  expect_clean(exchanged(setup, every_op()), {Traffic::random, Lengths::mixed, 2, 4, 3});
}

INSTANTIATE_TEST_SUITE_P(Decode, EveryMode,
                         testing::Values(GraphMode::none, GraphMode::piecewise, GraphMode::full,
                                         GraphMode::full_and_piecewise, GraphMode::breakable));

TEST(DecodeExchange, PromptsAreCleanWithEveryOpExchanged) {
  DecodeSetup setup;
  setup.geometry = device::decode::small_geometry(4, 3, 32);
  setup.geometry.capture_sizes = {4, 16};
  setup.mode = GraphMode::full_and_piecewise;
  setup.platform = "sim-gfx942";
  setup.conditions.policy = device::Policy::interleaved;
  expect_clean(exchanged(setup, every_op()), {Traffic::prompts, Lengths::short_ones, 2, 4, 3});
}

TEST(DecodeExchange, V32IsCleanWithEveryOpExchanged) {
  DecodeSetup setup;
  setup.geometry = device::decode::small_v32_geometry(4);
  setup.geometry.max_batched_tokens = 48;
  setup.platform = "sim-gfx950";
  setup.conditions.policy = device::Policy::late;
  expect_clean(exchanged(setup, every_op()), {Traffic::there_and_back, Lengths::mixed, 2, 4, 3});
}

DecodeRun run_of(const std::string& fault) {
  for (const DecodeFault& one : all_decode_faults()) {
    if (one.name == fault) return fault_runs({"sim-sm90"}, {&one}, 0).front();
  }
  throw std::invalid_argument("no fault " + fault);
}

TEST(DecodeExchange, OfTheBrokenOpMakesTheStepRight) {
  for (const char* fault : {"hc_eps_lost", "mhc_fused_comb_transposed", "swa_tail_not_cleared"}) {
    const DecodeRun run = run_of(fault);
    const WatchResult broken = watch(run.setup, run.schedule);
    ASSERT_FALSE(broken.clean()) << fault;
    expect_clean(exchanged(run.setup, {run.fault->broken}), run.schedule);
    EXPECT_FALSE(watch(exchanged(run.setup, {"rms_norm"}), run.schedule).clean()) << fault;
  }
}

TEST(DecodeExchange, OfOneCallAlone) {
  const DecodeRun run = run_of("mhc_fused_comb_transposed");
  const WatchResult broken = watch(run.setup, run.schedule);
  ASSERT_FALSE(broken.clean());
  const Finding& first = broken.findings.front();
  const WatchResult rest = watch(exchanged(run.setup, {first.call}), run.schedule);
  ASSERT_FALSE(rest.clean());
  EXPECT_EQ(rest.findings.front().op, first.op);
  EXPECT_NE(rest.findings.front().call, first.call);
}

TEST(DecodeExchange, StandsInForAnOpThatIsNotThere) {
  const DecodeRun run = run_of("missing_op");
  expect_clean(exchanged(run.setup, {"hc_head"}), run.schedule);
}

// A simulated device that reports that it is a real one.
class RealDevice final : public device::ForwardingDevice {
 public:
  explicit RealDevice(std::unique_ptr<device::Device> inner)
      : ForwardingDevice(std::move(inner)), properties_(ForwardingDevice::properties()) {
    properties_.simulated = false;
  }
  const device::Properties& properties() const override { return properties_; }

 private:
  device::Properties properties_;
};

DecodeSetup on_real_device(GraphMode mode) {
  DecodeRun run = run_of("hc_eps_lost");
  run.setup.mode = mode;
  run.setup.wrap = [](std::unique_ptr<device::Device> inner) -> std::unique_ptr<device::Device> {
    return std::make_unique<RealDevice>(std::move(inner));
  };
  return exchanged(run.setup, {"hc_head"});
}

TEST(DecodeExchange, OfEagerCallsOnRealDevices) {
  expect_clean(on_real_device(GraphMode::none), run_of("hc_eps_lost").schedule);
}

TEST(DecodeExchange, IsRefusedInGraphsOfRealDevices) {
  const WatchResult result = watch(on_real_device(GraphMode::full), run_of("hc_eps_lost").schedule);
  ASSERT_FALSE(result.clean());
  EXPECT_NE(result.findings.front().text.find("hc_head cannot be replaced in a graph"),
            std::string::npos)
      << text_of(result);
}

}  // namespace decode_exchange_test
}  // namespace plumb::cases
