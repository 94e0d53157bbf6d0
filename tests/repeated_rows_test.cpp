// SPDX-License-Identifier: Apache-2.0
//
// Problems that are judged by a sample of their rows: production sizes, here scaled down by a
// verdict that may cost nothing.
#include "cases/repeated_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cases/faults/faults.h"
#include "cases/registry.h"
#include "cases/row_axis.h"
#include "cases/run.h"
#include "tools/report.h"

namespace plumb::cases {

namespace {

constexpr const char* kPlatform = "sim-sm90";

Case find_case(std::string_view id) {
  for (const Case& which : all_cases()) {
    if (which.id() == id) return which;
  }
  throw BadRow("no case " + std::string(id));
}

RunOptions sampling(std::int64_t least_sample) {
  RunOptions options;
  options.platform = kPlatform;
  options.tier = Tier::smoke;
  options.verdict_budget = 1;
  options.least_sample = least_sample;
  return options;
}

const Mutant& find_mutant(std::string_view name) {
  const auto& all = all_mutants();
  return *std::find_if(all.begin(), all.end(), [&](const Mutant& m) { return m.name == name; });
}

std::string report_of(const CaseResult& result) {
  return tools::failure_text({result, {}, {}, {}, {}}, {});
}

// ---- every op that says that its rows can be sampled ----

class EveryRow : public testing::TestWithParam<std::string> {};

TEST_P(EveryRow, PassesBySampleWhatPassesAsAWhole) {
  int sampled = 0;
  for (const Case& which : all_cases()) {
    if (which.op->name != GetParam() || which.row.tier == Tier::full) continue;
    const CaseResult result = run_case(which, sampling(2));
    const CaseResult whole = [&] {
      RunOptions options = sampling(2);
      options.verdict_budget = HUGE_VAL;
      return run_case(which, options);
    }();
    EXPECT_EQ(result.outcome, whole.outcome) << which.id() << "\n" << report_of(result);
    for (const TensorSummary& tensor : result.tensors) sampled += tensor.sample.rows > 0;
  }
  EXPECT_GT(sampled, 0) << "no row of this op is long enough to be sampled";
}

std::vector<std::string> sampled_ops() {
  std::vector<std::string> names;
  for (const OpDefinition& op : all_ops()) {
    if (!op.row_count.empty()) names.emplace_back(op.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryRow, testing::ValuesIn(sampled_ops()),
                         [](const auto& op) { return op.param; });

// ---- what is found ----

TEST(RepeatedRows, WrongRowsAreAllNamedThoughFewAreJudged) {
  const Case which = find_case("rms_norm/tokens_1025/eager");
  const CaseResult result =
      run_case(which, with_mutant(sampling(16), find_mutant("rms_norm_wrong_from_row_1000")));
  EXPECT_EQ(result.outcome, Outcome::failed);
  const std::string report = report_of(result);
  EXPECT_NE(report.find("wrong with all that has the same inputs and bits: rows 1000-1024 of 1025"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find("16 of 1025 rows judged; 1009 more"), std::string::npos) << report;
}

TEST(RepeatedRows, RightRowsAreAllEqualToJudgedOnes) {
  const CaseResult result = run_case(find_case("rms_norm/tokens_1025/eager"), sampling(16));
  EXPECT_EQ(result.outcome, Outcome::passed) << report_of(result);
  const Sample& sample = result.tensors.at(0).sample;
  EXPECT_EQ(sample.rows, 1025 * result.points);
  EXPECT_EQ(sample.judged, 8 * result.points);  // half of 16 are different
  EXPECT_EQ(sample.unjudged(), 0);
}

// An op's kernel, and after it a fault in one row of its result.
plumb_status (*right_launch)(const void*) = nullptr;
std::int64_t faulty_row = 0;

plumb_status launch_with_fault(const void* params) {
  const auto& p = *static_cast<const plumb_rms_norm_params*>(params);
  const plumb_status status = right_launch(params);
  plumb_rms_norm_params one = p;  // the row once more, with the inputs of the one behind or before
  one.tokens = 1;
  one.x = p.x + (faulty_row == 0 ? 1 : faulty_row - 1) * p.x_row_stride;
  one.out = p.out + faulty_row * p.hidden;
  return status == PLUMB_OK ? right_launch(&one) : status;
}

RunOptions with_faulty_row(RunOptions options, std::int64_t row) {
  static plumb_op_entry entry;
  static plumb_implementation implementation;
  entry = *device::find_entry(device::builtin_implementation(kPlatform), "rms_norm");
  right_launch = entry.launch;
  faulty_row = row;
  entry.launch = launch_with_fault;
  implementation = {PLUMB_ABI_VERSION, "a fault in one row", &entry, 1};
  options.implementation = [](std::string_view, bool) -> const plumb_implementation& {
    return implementation;
  };
  return options;
}

TEST(RepeatedRows, OneWrongRowIsFoundWhereverItIs) {
  const Case which = find_case("rms_norm/tokens_1025/eager");
  int found = 0;
  const std::vector<std::int64_t> rows = {0, 1, 63, 64, 500, 511, 777, 1000, 1023, 1024};
  for (const std::int64_t row : rows) {
    const CaseResult result = run_case(which, with_faulty_row(sampling(32), row));
    // One in sixteen neighbours has the same inputs.
    if (result.outcome != Outcome::failed) continue;
    ++found;
    const std::string named = fmt::format("same inputs and bits: rows {} of 1025", row);
    EXPECT_NE(report_of(result).find(named), std::string::npos) << report_of(result);
  }
  EXPECT_GE(found, 8);
}

}  // namespace

}  // namespace plumb::cases
