// SPDX-License-Identifier: Apache-2.0
//
// Detectors of a watched decode step: a right step raises no alarm under any conditions, and each
// kind of fault is seen and blamed on the broken op.
#include <gtest/gtest.h>

#include <algorithm>

#include "decode/watch/watch.h"
#include "faults/decode/fault_runs.h"
#include "tests/support/long_tests.h"

namespace plumb::cases {

namespace decode_watch_test {

using device::decode::GraphMode;

std::string text_of(const WatchResult& result) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (const Finding& finding : result.findings) {
    if (&finding - result.findings.data() == kMost) return text + "...\n";
    text += std::string(name_of(finding.detector)) + ", step " + std::to_string(finding.step) +
            ", " + finding.op + " (" + finding.call + "): " + finding.text + "\n";
  }
  return text;
}

constexpr GraphMode kModes[] = {GraphMode::none,
                                GraphMode::piecewise,
                                GraphMode::full,
                                GraphMode::full_decode_only,
                                GraphMode::full_and_piecewise,
                                GraphMode::breakable};

// Sizes for 1 and 4 requests are captured, so steps of 2 or 3 requests have padding rows.
DecodeSetup setup_of(const std::string& platform, GraphMode mode, std::int64_t speculated = 0) {
  DecodeSetup setup;
  setup.platform = platform;
  setup.mode = mode;
  setup.geometry = device::decode::small_geometry(4, speculated, 16);
  setup.geometry.capture_sizes = {1 + speculated, 4 + 4 * speculated};
  setup.geometry.drafter = true;
  return setup;
}

void expect_clean(const DecodeSetup& setup, const ScheduleShape& shape, std::int64_t calls = 80) {
  const WatchResult result = watch(setup, shape);
  EXPECT_TRUE(result.clean()) << setup.platform << ", " << name_of(setup.mode) << ", "
                              << text_of(shape) << "\n"
                              << text_of(result);
  EXPECT_EQ(result.steps, shape.steps);
  EXPECT_GT(result.calls_judged, calls * shape.steps / setup.in_flight);
}

constexpr const char* kPlatforms[] = {"sim-sm90", "sim-gfx942", "sim-gfx950"};

class CleanSteps : public testing::TestWithParam<GraphMode> {};

// Each mode has other traffic on each platform.
TEST_P(CleanSteps, RaiseNoAlarm) {
  constexpr Traffic kTraffic[] = {Traffic::there_and_back, Traffic::permute, Traffic::replace,
                                  Traffic::random, Traffic::shrink};
  std::uint64_t n = static_cast<std::uint64_t>(GetParam());
  for (const char* platform : {kPlatforms[n % 3], kPlatforms[(n + 1) % 3]}) {
    expect_clean(setup_of(platform, GetParam()),
                 {kTraffic[n % std::size(kTraffic)], static_cast<Lengths>(n % 6), 3, 4, n});
    n += 3;
  }
}

TEST_P(CleanSteps, WithPromptsRaiseNoAlarm) {
  std::uint64_t n = static_cast<std::uint64_t>(GetParam());
  for (const char* platform : kPlatforms) {
    expect_clean(setup_of(platform, GetParam()),
                 {Traffic::prompts, static_cast<Lengths>(n++ % 6), 3, 4, n});
  }
}

TEST_P(CleanSteps, WithDenseListsRaiseNoAlarm) {
  const auto n = static_cast<std::size_t>(GetParam());
  DecodeSetup setup = setup_of(kPlatforms[n % 3], GetParam(), n % 2);
  setup.geometry.lists = device::decode::Lists::dense;
  constexpr Traffic kTraffic[] = {Traffic::shrink, Traffic::prompts, Traffic::replace,
                                  Traffic::random, Traffic::join,    Traffic::there_and_back};
  expect_clean(setup, {kTraffic[n % 6], static_cast<Lengths>((n + 2) % 6), 3, 4, n}, 70);
}

DecodeSetup v32_setup_of(const std::string& platform, GraphMode mode, std::int64_t speculated = 0) {
  DecodeSetup setup = setup_of(platform, mode);
  setup.geometry = device::decode::small_v32_geometry(4, speculated, speculated == 0 ? 64 : 1, 40);
  setup.geometry.capture_sizes = {1 + speculated, 4 + 4 * speculated};
  return setup;
}

TEST_P(CleanSteps, OfV32WithPromptsRaiseNoAlarm) {
  const auto n = static_cast<std::size_t>(GetParam());
  const ScheduleShape shape{n % 2 == 0 ? Traffic::join : Traffic::prompts,
                            static_cast<Lengths>((n + 1) % 6), 3, 4, n};
  expect_clean(v32_setup_of(kPlatforms[n % 3], GetParam()), shape, 35);
}

INSTANTIATE_TEST_SUITE_P(Modes, CleanSteps, testing::ValuesIn(kModes),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

TEST(CleanUnevenSteps, RaiseNoAlarm) {
  expect_clean(setup_of("sim-gfx942", GraphMode::full_and_piecewise, 2),
               {Traffic::uneven, Lengths::around_page, 2, 3, 7});
  expect_clean(setup_of("sim-sm90", GraphMode::breakable, 2),
               {Traffic::prompts, Lengths::around_k, 2, 3, 7});
  expect_clean(v32_setup_of("sim-gfx950", GraphMode::piecewise, 2),
               {Traffic::uneven, Lengths::around_k, 3, 3, 7}, 35);
  expect_clean(v32_setup_of("sim-gfx942", GraphMode::breakable, 3),
               {Traffic::prompts, Lengths::around_page, 3, 4, 7}, 35);
}

// The second of two steps is enqueued while the first is in progress.
TEST(CleanStepsInFlight, RaiseNoAlarm) {
  for (const char* platform : {"sim-sm90", "sim-gfx942"}) {
    DecodeSetup setup = setup_of(platform, GraphMode::full);
    setup.in_flight = 2;
    setup.conditions.policy = device::Policy::interleaved;
    expect_clean(setup, {Traffic::there_and_back, Lengths::mixed, 3, 4, 1});
  }
}

// Kernel and reference take the constant from the call, so both use the wrong one and agree.
TEST(Conventions, OfAnotherModelAreFoundAtTheirOp) {
  DecodeSetup setup = setup_of("sim-sm90", GraphMode::full);
  setup.geometry.routed_scaling = 2.5F;
  const WatchResult result = watch(setup, {Traffic::steady, Lengths::random, 2, 2, 1});
  ASSERT_FALSE(result.clean());
  for (const Finding& finding : result.findings) {
    EXPECT_EQ(finding.detector, Detector::convention) << finding.text;
    EXPECT_EQ(finding.op, "sqrt_softplus_topk");
    EXPECT_EQ(finding.text, "routed_scaling_factor is 2.5, not 1.5 as in V4-Flash");
  }
}

// A dimension of split-K parts, or of tiles, is no token dimension, even if its size equals the
// number of tokens.
TEST(TokenRows, AreThoseThatGrowWithTheTokens) {
  const auto of = [](Role role, std::vector<std::int64_t> shape) {
    return token_dimension(HostTensor({.name = "x", .shape = std::move(shape), .role = role}), 4);
  };
  EXPECT_EQ(of(Role::output, {4, 4, 8}), 0u);
  EXPECT_EQ(of(Role::output, {3, 4, 8}), 1u);
  EXPECT_EQ(of(Role::scratch, {4, 4, 24}), 1u);
  EXPECT_EQ(of(Role::scratch, {4, 5, 24}), std::nullopt);
  EXPECT_EQ(of(Role::state, {4, 8}), std::nullopt);
  EXPECT_EQ(of(Role::output, {5, 4}), std::nullopt);
  EXPECT_EQ(of(Role::output, {}), std::nullopt);
}

class EachFault : public testing::TestWithParam<std::string> {};

const DecodeFault& fault_of(const std::string& name) {
  const auto& all = all_decode_faults();
  return *std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.name == name; });
}

// All faults take minutes. CI runs plumb faults, which does the same on two platforms.
TEST_P(EachFault, IsSeenAndPutDownToWhatIsBroken) {
  if (!tests::long_tests_run()) GTEST_SKIP() << tests::kTakesMinutes;
  const DecodeFault& fault = fault_of(GetParam());
  DecodeSetup setup;
  setup.platform = (&fault - all_decode_faults().data()) % 2 == 0 ? "sim-sm90" : "sim-gfx942";
  const WatchResult result = watch(fault.inject(setup), fault.schedule);
  EXPECT_TRUE(result.found_by(fault.seen_by)) << setup.platform << "\n" << text_of(result);
  EXPECT_FALSE(result.found_by(fault.blind)) << setup.platform << "\n" << text_of(result);
  ASSERT_FALSE(result.clean());
  EXPECT_EQ(result.findings.front().op, fault.broken) << setup.platform << "\n" << text_of(result);
}

// No detector raises an alarm, although some tokens choose other experts.
TEST(FaultsWithinNumerics, RaiseNoAlarmAndFlipFewChoices) {
  for (const DecodeFault& fault : faults_within_numerics()) {
    for (const char* platform : {"sim-sm90", "sim-gfx942"}) {
      const WatchResult result = result_of(fault_runs({platform}, {&fault}, 0).front());
      EXPECT_TRUE(result.clean()) << platform << "\n" << text_of(result);
      EXPECT_GT(result.flips, 0) << platform;
      EXPECT_LT(result.flips, result.choices / 20) << platform;
    }
  }
}

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const DecodeFault& fault : all_decode_faults()) names.push_back(fault.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(DecodeFaults, EachFault, testing::ValuesIn(fault_names()),
                         [](const auto& fault) { return fault.param; });

}  // namespace decode_watch_test

}  // namespace plumb::cases
