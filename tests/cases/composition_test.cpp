// SPDX-License-Identifier: Apache-2.0
//
// The scenario "composition" fails if the fused op or a plain op is wrong, and names the rows. It
// demands equal bits only of plumb's own kernels, and only if the fused op and the plain ops
// declare equal arithmetic and no different contract.
#include "cases/drivers/composition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "faults/faults.h"
#include "tests/support/rows_and_cases.h"
#include "tools/report.h"

namespace plumb::cases {
namespace composition_test {

constexpr std::string_view kPlatform = "sim-sm90";

// Runs a case with plumb's kernels, after `change` has modified their entries.
CaseResult run_with(std::string_view id,
                    const std::function<void(std::vector<device::OpEntry>&)>& change,
                    bool foreign = false) {
  device::Implementation table{"changed", device::builtin_implementation(kPlatform).entries};
  change(table.entries);
  RunOptions options;
  options.platform = kPlatform;
  options.foreign = foreign;
  options.implementation = [&](std::string_view, bool) -> const device::Implementation& {
    return table;
  };
  return run_case(find_case(id), options);
}

device::OpEntry& entry_of(std::vector<device::OpEntry>& entries, std::string_view op) {
  return *std::find_if(entries.begin(), entries.end(),
                       [&](const device::OpEntry& entry) { return entry.op == op; });
}

// Replaces rms_norm by a mutant (a kernel with a planted fault) that truncates: it exceeds the
// bounds in every row.
void truncate_plain_norm(std::vector<device::OpEntry>& entries) {
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.name == "rms_norm_truncates") entry_of(entries, "rms_norm") = mutant.entry;
  }
}

std::string report_of(const CaseResult& result) {
  return tools::failure_text({result, {}, {}, {}, {}}, {});
}

TEST(Composition, OnlyFusedOpsHaveCases) {
  for (const Case& which : all_cases()) {
    if (which.scenario->mode != Scenario::Mode::composition) continue;
    ASSERT_TRUE(which.op->fused) << which.id();
    EXPECT_TRUE(which.op->fused(which.row)) << which.id();
    const auto properties = device::open_device(kPlatform)->properties();
    EXPECT_TRUE(which.op->make_problem(which.row, properties)->composition()) << which.id();
  }
}

TEST(Composition, AWrongPlainOpFailsAndItsRowsAreNamed) {
  const CaseResult result = run_with("q_kv_rms_norm/v4_flash/composition", truncate_plain_norm);
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_NE(
      report_of(result).find("out_q: differs from rms_norm, rms_norm in 5 of 5 rows (rows 0-4)"),
      std::string::npos)
      << report_of(result);
}

TEST(Composition, OtherArithmeticIsHeldToItsBoundsInsteadOfBits) {
  const auto declare = [](std::vector<device::OpEntry>& entries) {
    entry_of(entries, "rms_norm").numerics.chains = 128;
  };
  const std::string_view id = "q_kv_rms_norm/v4_flash/composition";
  EXPECT_EQ(run_with(id, declare).outcome, Outcome::passed);

  const CaseResult wrong = run_with(id, [&](std::vector<device::OpEntry>& entries) {
    truncate_plain_norm(entries);
    declare(entries);
  });
  EXPECT_EQ(wrong.outcome, Outcome::failed);
  EXPECT_NE(report_of(wrong).find("plain sequence: out_q"), std::string::npos) << report_of(wrong);
  EXPECT_EQ(report_of(wrong).find("differs from"), std::string::npos) << report_of(wrong);
}

// Equal numerics do not say which elements a chain adds, so a plug-in's kernels may differ in bits.
TEST(Composition, KernelsOfAPlugInAreHeldToTheirBoundsInsteadOfBits) {
  const std::string_view id = "q_kv_rms_norm/v4_flash/composition";
  const CaseResult right = run_with(id, [](std::vector<device::OpEntry>&) {}, true);
  EXPECT_EQ(right.outcome, Outcome::passed) << report_of(right);
  const CaseResult wrong = run_with(id, truncate_plain_norm, true);
  EXPECT_EQ(wrong.outcome, Outcome::failed);
  EXPECT_NE(report_of(wrong).find("plain sequence: out_q"), std::string::npos) << report_of(wrong);
  EXPECT_EQ(report_of(wrong).find("differs from"), std::string::npos) << report_of(wrong);
}

// If the plain norm declares another contract than the fused norm, it may be right without having
// the same bits.
TEST(Composition, AnotherContractIsHeldToItsBoundsInsteadOfBits) {
  const std::string_view id = "q_kv_rms_norm/v4_flash/composition";
  const auto contracts = [](const char* fused, const char* plain) {
    return [=](std::vector<device::OpEntry>& entries) {
      entry_of(entries, "q_kv_rms_norm").contract = fused;
      entry_of(entries, "rms_norm").contract = plain;
      truncate_plain_norm(entries);
      entry_of(entries, "rms_norm").contract = plain;
    };
  };
  const CaseResult other = run_with(id, contracts("rounding=twice", "rounding=once"));
  EXPECT_NE(report_of(other).find("plain sequence: out_q"), std::string::npos) << report_of(other);
  EXPECT_EQ(report_of(other).find("differs from"), std::string::npos) << report_of(other);
  const CaseResult same = run_with(id, contracts("rounding=once", "rounding=once"));
  EXPECT_NE(report_of(same).find("differs from"), std::string::npos) << report_of(same);
}

TEST(Composition, WithoutThePlainOpIsSkipped) {
  const CaseResult result = run_with(
      "mtp_input_rms_norm/many_positions/composition",
      [](std::vector<device::OpEntry>& entries) { entry_of(entries, "rms_norm").op = ""; });
  EXPECT_EQ(result.outcome, Outcome::skipped);
  EXPECT_EQ(result.reason, "changed has no rms_norm, which the plain sequence calls");
}

}  // namespace composition_test
}  // namespace plumb::cases
