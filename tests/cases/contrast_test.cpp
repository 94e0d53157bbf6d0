// SPDX-License-Identifier: Apache-2.0
//
// What separates failures from passes: never a statement that an observation contradicts, and none
// that chance explains.
#include "cases/studies/contrast.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases/studies/separation.h"
#include "faults/faults.h"
#include "faults/replaced_op.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace contrast_test {

std::vector<Observation> observations(int failed, int passed, double first_pass) {
  std::vector<Observation> all;
  for (int i = 0; i < failed; ++i) all.push_back({true, static_cast<double>(i)});
  for (int i = 0; i < passed; ++i) all.push_back({false, first_pass + i});
  return all;
}

TEST(Separation, FindsTheValuesOnBothSides) {
  const auto found = separating_value(observations(8, 9, 20), 1);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->fails_below);
  EXPECT_EQ(found->last_failing, 7);
  EXPECT_EQ(found->first_passing, 20);
  EXPECT_EQ(found->failed, 8);
  EXPECT_EQ(found->passed, 9);
}

TEST(Separation, OneExceptionIsEnoughForNone) {
  auto all = observations(8, 9, 20);
  all.push_back({true, 25});
  EXPECT_FALSE(separating_value(all, 1));
}

// Near a limit both may happen, if it is said how often.
TEST(Separation, AFewMayLieBetween) {
  auto all = observations(8, 9, 20);
  all.push_back({true, 21});
  EXPECT_FALSE(separating_value(all, 1));
  const auto found = separating_value(all, 1, 0.2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->last_failing, 7);
  EXPECT_EQ(found->first_passing, 22);
  EXPECT_EQ(found->mixed, 3);
  EXPECT_EQ(found->failed, 8);
  EXPECT_EQ(found->passed, 7);
  all.push_back({false, 3});
  EXPECT_FALSE(separating_value(all, 1, 0.2)) << "most lies between";
}

TEST(Separation, AValueOnBothSidesSeparatesNothing) {
  EXPECT_FALSE(separating_value(observations(8, 9, 7), 1));
}

TEST(Separation, FewObservationsAreNoProof) {
  EXPECT_FALSE(separating_value(observations(2, 100, 200), 1)) << "two failures";
  EXPECT_FALSE(separating_value(observations(4, 4, 20), 1)) << "2 of 70 choices";
  EXPECT_TRUE(separating_value(observations(7, 7, 20), 1));
  EXPECT_FALSE(separating_value(observations(7, 7, 20), 10)) << "one of ten numbers always may";
}

CaseResult failed(const Case& which, const RunOptions& options) {
  CaseResult result = run_case(which, options);
  EXPECT_EQ(result.outcome, Outcome::failed);
  return result;
}

plumb_status writes_nothing(const void*) { return PLUMB_OK; }

TEST(Contrast, NamesAKernelThatWritesNothing) {
  for (const char* id : {"rms_norm/v4_pro_hidden/eager", "rms_norm/hidden_769/eager",
                         "inverse_rope/ascending_positions/eager"}) {
    const Case& which = find_case(id);
    device::OpEntry entry =
        *device::find_entry(device::builtin_implementation("sim-sm90"), which.op->name);
    entry.launch = writes_nothing;
    RunOptions options = on("sim-sm90");
    options.implementation = with_op_replaced({entry, {}});
    const std::string cause = contrast(which, failed(which, options), options).cause;
    const bool in_place = which.op->name == "inverse_rope";  // its outputs start as its inputs
    EXPECT_EQ(cause.find("the kernel wrote nothing: every promised element") == 0, !in_place)
        << id << ": " << cause;
  }
}

// A kernel that writes most of its output wrote something.
TEST(Contrast, AMissingLastRowIsNotNothing) {
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.op != "rms_norm") continue;
    const Case& which = find_case(std::string(mutant.case_id));
    const RunOptions options = with_mutant(on("sim-sm90"), mutant);
    const CaseResult result = run_case(which, options);
    if (result.outcome != Outcome::failed) continue;
    EXPECT_EQ(contrast(which, result, options).cause, "") << mutant.name;
  }
}

TEST(Contrast, NothingOfACaseThatPasses) {
  const Case& which = find_case("rms_norm/v4_pro_hidden/eager");
  const Contrast found = contrast(which, run_case(which, on("sim-sm90")), on("sim-sm90"));
  EXPECT_EQ(found.cause, "");
  EXPECT_TRUE(found.lines.empty());
}

}  // namespace contrast_test
}  // namespace plumb::cases
