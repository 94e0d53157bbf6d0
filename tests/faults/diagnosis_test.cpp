// SPDX-License-Identifier: Apache-2.0
//
// The diagnosis of failed decode steps. A fault of the library is named in a setup in which it was
// never tried, and a defect that is not in the library is not mistaken for one of its faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "diagnosis/step_diagnosis.h"
#include "faults/decode/fault_runs.h"
#include "faults/faults.h"
#include "tests/support/foreign_defects.h"

namespace plumb::cases {

namespace diagnosis_test {

using device::decode::GraphMode;

const DecodeFault& fault_of(const std::string& name) {
  const auto& all = all_decode_faults();
  return *std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.name == name; });
}

DecodeRun elsewhere(const std::string& name, std::uint64_t seed) {
  const std::string platform = seed % 2 == 0 ? "sim-sm90" : "sim-gfx942";
  return elsewhere_runs({platform}, {&fault_of(name)}, seed).front();
}

// One fault of each kind; plumb faults tries all of them.
class NamedElsewhere : public testing::TestWithParam<std::string> {};

TEST_P(NamedElsewhere, AndNoOther) {
  const DecodeRun run = elsewhere(GetParam(), 31);
  const auto [result, diagnosis, skipped] = watch_and_diagnose(run.setup, run.schedule);
  ASSERT_FALSE(result.clean());
  EXPECT_TRUE(diagnosis.names(GetParam())) << text_of(diagnosis);
  EXPECT_EQ(text_of(diagnosis).find("looks like: " + GetParam() + " ("), 0u) << text_of(diagnosis);
}

INSTANTIATE_TEST_SUITE_P(Faults, NamedElsewhere,
                         testing::Values("v32_tail_not_cleared", "host_sync_in_capture",
                                         "captured_state_freed", "mhc_fused_comb_transposed",
                                         "one_block_more_shared", "inputs_rewritten_in_flight"),
                         [](const auto& name) { return name.param; });

// Both faults have the same effects, so the diagnosis cannot decide between them.
TEST(StepDiagnosis, NamesBothOfTwoFaultsThatDoTheSame) {
  const DecodeRun run = elsewhere("planner_hoisted", 2);
  const Diagnosis diagnosis = watch_and_diagnose(run.setup, run.schedule).diagnosis;
  EXPECT_EQ(diagnosis.named.size(), 2u) << text_of(diagnosis);
  EXPECT_TRUE(diagnosis.names_among_others("planner_hoisted")) << text_of(diagnosis);
  EXPECT_TRUE(diagnosis.names_among_others("warm_up_state_captured")) << text_of(diagnosis);
}

struct IndptrKept final : device::decode::MetadataPolicy {
  bool copies_indptr(std::int64_t copies) const override { return copies < 9; }
};
TEST(StepDiagnosis, NamesAFaultThatBeginsLater) {
  const DecodeFault& fault = fault_of("ragged_indptr_not_copied");
  DecodeSetup setup;
  setup.policies.metadata = std::make_shared<IndptrKept>();
  const auto [result, diagnosis, skipped] = watch_and_diagnose(setup, fault.schedule);
  ASSERT_FALSE(result.clean());
  EXPECT_GT(result.findings.front().step, 3);
  EXPECT_TRUE(diagnosis.names(fault.name)) << text_of(diagnosis);
}

// If the planted fault is missing in the library, the next best fault is not named.
TEST(StepDiagnosis, NamesNothingThatIsNotInTheLibrary) {
  const DecodeRun run = elsewhere("top_k_reset_to_zero", 6);
  const WatchedFailure failure = watch_for_evidence(run.setup, run.schedule);
  ASSERT_FALSE(failure.result.clean());
  std::vector<DecodeFault> others = all_decode_faults();
  std::erase_if(others, [](const auto& fault) { return fault.name == "top_k_reset_to_zero"; });
  const Diagnosis diagnosis = diagnose_step(failure.evidence, others);
  EXPECT_TRUE(diagnosis.named.empty()) << text_of(diagnosis);
}

TEST(StepDiagnosis, SaysThatNobodyLookedWhereTheValuesAreTooLarge) {
  StepEvidence evidence;
  evidence.findings = {{Detector::reference, 0, 0, "op", "call", "text"}};
  evidence.left_out = "the step is too large for the simulator";
  EXPECT_EQ(text_of(diagnose_step(evidence)),
            "not diagnosed: the step is too large for the simulator");
}

// A context shorter than a compressed state: plumb's own kernels refuse it too.
TEST(StepDiagnosis, BlamesNoFaultForWhatHappensWithoutAny) {
  DecodeSetup setup;
  setup.geometry.max_context = device::decode::kC128a - 1;
  const auto [result, diagnosis, skipped] =
      watch_and_diagnose(setup, {.lengths = Lengths::short_ones, .steps = 1, .most_requests = 1});
  ASSERT_FALSE(result.clean());
  EXPECT_EQ(result.findings.front().detector, Detector::error);
  EXPECT_EQ(text_of(diagnosis),
            "not diagnosed: the steps fail in the same way without a planted fault");
}

class ForeignDefect : public testing::TestWithParam<tests::ForeignDefect> {};

TEST_P(ForeignDefect, IsNoKnownPattern) {
  const auto [result, diagnosis, skipped] =
      watch_and_diagnose(GetParam().plant({}), {Traffic::random, Lengths::random, 6, 4, 3});
  ASSERT_FALSE(result.clean()) << "it does not show";
  EXPECT_EQ(text_of(diagnosis).find("matches no fault of the library"), 0u) << text_of(diagnosis);
}

INSTANTIATE_TEST_SUITE_P(Defects, ForeignDefect, testing::ValuesIn(tests::foreign_defects()),
                         [](const auto& defect) { return defect.param.name; });

}  // namespace diagnosis_test

}  // namespace plumb::cases
