// SPDX-License-Identifier: Apache-2.0
//
// Goldens of decode steps: digests of calls, what changes them, and which call is named.
#include "tools/golden/step_golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "decode/schedule/any_case.h"
#include "diagnosis/decode_step_run.h"
#include "tests/golden/golden_cases.h"

namespace plumb::tools {
namespace step_golden_test {

using golden::Agreement;
using golden::CaseGolden;
using golden::GoldenComparison;
using Settings = std::vector<std::pair<std::string, std::string>>;

cases::StepCase short_steps(const Settings& settings = {}) {
  for (cases::AnyCase& one : cases::cases_of_all_kinds({}, {std::string(cases::kDecodeStep)})) {
    if (one.id() != "decode_step/v4/full") continue;
    one.set_parameter("requests", "2");
    one.set_parameter("steps", "2");
    for (const auto& [name, value] : settings) one.set_parameter(name, value);
    return *one.of_steps();
  }
  throw std::logic_error("no such case");
}

cases::CallDigests digests(const cases::StepCase& which) {
  std::string why;
  auto found = digests_of(which, golden::options_on("sim-sm90"), why);
  if (!found) throw std::runtime_error(why);
  return *found;
}

// One run for all tests of comparisons.
const cases::CallDigests& usual() {
  static const cases::CallDigests once = digests(short_steps());
  return once;
}

// As recorded by this build.
CaseGolden recorded() {
  CaseGolden golden = golden_of(short_steps(), usual());
  golden.provenance =
      golden::provenance_of(cases::kDecodeStep, device::open_device("sim-sm90")->properties());
  return golden;
}

// Changes the stored digest of one call.
CaseGolden with_other_call(std::size_t step, std::size_t call) {
  CaseGolden golden = recorded();
  golden::TensorGolden& calls = golden.outputs.front();
  calls.values[step * calls.row_bytes() + call * sizeof(std::uint64_t)] ^= std::byte{1};
  calls.digest = golden::digest_of(calls.values);
  return golden;
}

GoldenComparison compared(const CaseGolden& golden, const cases::CallDigests& steps,
                          bool exact = false) {
  return compare_steps(golden, short_steps(), steps, device::open_device("sim-sm90")->properties(),
                       exact);
}

TEST(StepGoldenTest, ConditionsDoNotChangeDigestsAndValuesDo) {
  ASSERT_EQ(usual().size(), 2u);
  ASSERT_GT(usual()[0].size(), 50u);
  EXPECT_EQ(digests(short_steps({{"order", "reverse"}, {"policy", "late"}})), usual());
  const cases::CallDigests other = digests(short_steps({{"weights", "2"}}));
  ASSERT_EQ(other.size(), usual().size());
  std::size_t changed = 0;
  for (std::size_t i = 0; i < usual()[0].size(); ++i) changed += other[0][i] != usual()[0][i];
  EXPECT_GT(changed, usual()[0].size() / 2);
}

TEST(StepGoldenTest, TheSameCallsAgree) {
  EXPECT_EQ(compared(recorded(), usual()).agreement, Agreement::same);
}

TEST(StepGoldenTest, TheFirstOtherCallIsNamed) {
  const GoldenComparison one = compared(with_other_call(1, 7), usual());
  EXPECT_EQ(one.agreement, Agreement::failed);
  ASSERT_EQ(one.lines.size(), 2u);
  EXPECT_NE(
      one.lines[0].find("in 1 of 2 steps; the first is step 1, call 7, " + usual()[1][7].call),
      std::string::npos)
      << one.lines[0];
}

// Two files are compared without a run, so that a call has only a number.
TEST(StepGoldenTest, FilesNameACallByItsNumber) {
  const auto drifts = golden::drift_between(recorded(), with_other_call(0, 3));
  ASSERT_EQ(drifts.size(), 1u);
  EXPECT_TRUE(drifts[0].of_calls);
  EXPECT_EQ(drifts[0].elements_moved, 1);
  EXPECT_EQ(drifts[0].where, "step 0, call 3");
}

TEST(StepGoldenTest, OtherBitsOfAnotherToolchainAreDriftUnlessExact) {
  CaseGolden golden = with_other_call(0, 0);
  golden.provenance["compiler"] = "another one";
  EXPECT_EQ(compared(golden, usual()).agreement, Agreement::drifted);
  EXPECT_EQ(compared(golden, usual(), true).agreement, Agreement::failed);
}

TEST(StepGoldenTest, AnotherNumberOfStepsFails) {
  const GoldenComparison one = compared(recorded(), {usual()[0]});
  EXPECT_EQ(one.agreement, Agreement::failed);
  EXPECT_NE(one.lines.at(0).find("another shape"), std::string::npos) << one.lines.at(0);
}

// Of the two platforms that run the same kernels, one takes half of the steps in the default tier.
// Its schedule is another one, so it gives no digests.
TEST(StepGoldenTest, HalfOfTheStepsGiveNoDigests) {
  std::vector<std::size_t> steps;
  for (const char* platform : {"sim-gfx942", "sim-gfx950"}) {
    cases::RunOptions options = golden::options_on(platform);
    options.digests_calls = options.divides_schedules = true;
    steps.push_back(
        cases::run_decode_step(short_steps({{"steps", "4"}}), options, false).digests.size());
  }
  std::ranges::sort(steps);
  EXPECT_EQ(steps, (std::vector<std::size_t>{0, 4}));
}

// A call more than the golden has is no drift, on any toolchain.
TEST(StepGoldenTest, MoreCallsFail) {
  CaseGolden golden = recorded();
  golden.provenance["compiler"] = "another one";
  cases::CallDigests more = usual();
  const std::size_t most = std::max(more[0].size(), more[1].size());
  while (more[0].size() <= most) more[0].push_back({"rms_norm (once more)", 1});
  const GoldenComparison one = compared(golden, more);
  EXPECT_EQ(one.agreement, Agreement::failed);
  EXPECT_NE(one.lines.at(0).find("another shape"), std::string::npos) << one.lines.at(0);
}

TEST(StepGoldenTest, StepsThatFailAreRejected) {
  const auto result =
      compute_steps(short_steps({{"fault", "hc_eps_lost"}}), golden::options_on("sim-sm90"))();
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->rejected().size(), 1u);
  EXPECT_FALSE(result->rejected()[0].empty());
}

TEST(StepGoldenTest, OnlyRowsInModeFullHaveGoldens) {
  std::size_t full = 0;
  for (const cases::StepCase& which : cases::decode_step_cases()) {
    if (!wants_golden(which)) continue;
    EXPECT_EQ(which.mode, device::decode::GraphMode::full) << which.id();
    ++full;
  }
  EXPECT_EQ(full, 7u);
}

}  // namespace step_golden_test
}  // namespace plumb::tools
