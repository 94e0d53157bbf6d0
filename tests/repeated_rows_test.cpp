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

std::int64_t sampled_rows(const CaseResult& result) {
  std::int64_t rows = 0;
  for (const TensorSummary& tensor : result.tensors) rows += tensor.sample.rows;
  return rows;
}

// ---- every op that says that its rows can be sampled ----

// A row with rows enough to be sampled. False: it cannot have them.
bool lengthen(Case& which) {
  constexpr std::int64_t kEnough = 9;
  std::int64_t& rows = which.row.integers.find(which.op->row_count)->second;
  if (rows == 0 || which.row.tier == Tier::full) return false;
  if (rows < kEnough) rows = kEnough;
  try {
    const auto properties = device::open_device(kPlatform)->properties();
    return which.op->make_problem(which.row, properties)->rows_have_places();
  } catch (const BadRow&) {
    return false;
  }
}

class EveryRow : public testing::TestWithParam<std::string> {};

TEST_P(EveryRow, PassesBySample) {
  int cases = 0;
  for (Case which : all_cases()) {
    const bool replayed = which.scenario->mode == Scenario::Mode::full_graph;
    // How few are live changes from step to step: some rows show that.
    if (which.op->name != GetParam() || (replayed && which.row.tier != Tier::smoke)) continue;
    if (!lengthen(which)) continue;
    const CaseResult result = run_case(which, sampling(3));
    EXPECT_EQ(result.outcome, Outcome::passed) << which.id() << "\n" << report_of(result);
    EXPECT_GT(sampled_rows(result), 0) << which.id();
    ++cases;
  }
  EXPECT_GT(cases, 1);
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
  EXPECT_NE(report.find("rows 1000-1024 of 1025 are wrong"), std::string::npos) << report;
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
    const std::string named = fmt::format("bits of a wrong one, rows {} of 1025 are wrong", row);
    EXPECT_NE(report_of(result).find(named), std::string::npos) << report_of(result);
  }
  EXPECT_GE(found, 8);
}

}  // namespace

}  // namespace plumb::cases
