// SPDX-License-Identifier: Apache-2.0
//
// Problems judged on a sample of their rows. Meant for production sizes; here small problems are
// sampled because the verdict's budget is set to 1 ns.
#include "cases/drivers/tiled_problem.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <plumb/ops/norm.h>

#include <algorithm>
#include <cmath>

#include "cases/drivers/call_sample.h"
#include "cases/drivers/run.h"
#include "cases/tables/registry.h"
#include "cases/tensors/row_axis.h"
#include "faults/faults.h"
#include "tests/support/long_tests.h"
#include "tests/support/rows_and_cases.h"
#include "tools/report.h"

namespace plumb::cases {

namespace tiled_problem_test {

constexpr const char* kPlatform = "sim-sm90";

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

// ---- every op whose rows can be sampled ----

// Increases the row count so that the row can be sampled. Returns false if that is impossible, and
// for rows of tier full.
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

// With PLUMB_FULL=1 in the environment rows of the smoke and default tiers run, otherwise those of
// the smoke tier.
TEST_P(EveryRow, PassesBySample) {
  int cases = 0;
  for (Case which : cases_of(find_op(GetParam()))) {
    const bool replayed = which.scenario->mode == Scenario::Mode::full_graph;
    // In graph cases the number of live rows changes from step to step; rows of the smoke tier are
    // enough for that.
    const bool all_rows = tests::long_tests_run() && !replayed;
    if (!all_rows && which.row.tier != Tier::smoke) continue;
    if (!lengthen(which)) continue;
    RunOptions options = sampling(3);
    options.tier = Tier::smoke;
    const CaseResult result = run_case(which, options);
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

TEST(CallOfManyRows, SaysHowOftenASampleMissesADefect) {
  EXPECT_EQ(chance_of_missing(40, 40), 0);
  // One wrong row among the 38 that are drawn from, 4 of them drawn.
  EXPECT_NEAR(chance_of_missing(40, 6), 1 - 4.0 / 38, 1e-12);
  // Two wrong rows among the 198 that are drawn from, 10 of them drawn.
  EXPECT_NEAR(chance_of_missing(200, 12), (188.0 / 198) * (187.0 / 197), 1e-12);
  EXPECT_EQ(chance_of_missing(3, 2), 1);
}

// ---- which faults are found ----

TEST(TiledProblem, WrongRowsAreAllNamedThoughFewAreJudged) {
  const Case which = find_case("rms_norm/tokens_1025/eager");
  const CaseResult result =
      run_case(which, with_mutant(sampling(16), find_mutant("rms_norm_wrong_from_row_1000")));
  EXPECT_EQ(result.outcome, Outcome::failed);
  const std::string report = report_of(result);
  EXPECT_NE(report.find("25 of 1025 rows (rows 1000-1024) are wrong"), std::string::npos) << report;
  EXPECT_NE(report.find("16 of 1025 rows judged; 1009 more"), std::string::npos) << report;
}

TEST(TiledProblem, RightRowsAreAllEqualToJudgedOnes) {
  const CaseResult result = run_case(find_case("rms_norm/tokens_1025/eager"), sampling(16));
  EXPECT_EQ(result.outcome, Outcome::passed) << report_of(result);
  const Sample& sample = result.tensors.at(0).sample;
  EXPECT_EQ(sample.rows, 1025 * result.points);
  EXPECT_EQ(sample.judged, 8 * result.points);  // half of a sample of 16 have different inputs
  EXPECT_EQ(sample.unjudged(), 0);
}

// A kernel that, after the right result, overwrites one row with a wrong one.
plumb_status (*right_launch)(const void*) = nullptr;
std::int64_t faulty_row = 0;

plumb_status launch_with_fault(const void* params) {
  const auto& p = *static_cast<const plumb_rms_norm_params*>(params);
  const plumb_status status = right_launch(params);
  // Computes that row again from the inputs of the previous row (row 0: of the next one).
  plumb_rms_norm_params one = p;
  one.tokens = 1;
  one.x = p.x + (faulty_row == 0 ? 1 : faulty_row - 1) * p.x_row_stride;
  one.out = p.out + faulty_row * p.out_row_stride;
  return status == PLUMB_OK ? right_launch(&one) : status;
}

RunOptions with_faulty_row(RunOptions options, std::int64_t row) {
  static device::Implementation implementation;
  device::OpEntry entry =
      *device::find_entry(device::builtin_implementation(kPlatform), "rms_norm");
  right_launch = entry.launch;
  faulty_row = row;
  entry.launch = launch_with_fault;
  implementation = {"a fault in one row", {entry}};
  options.implementation = [](std::string_view, bool) -> const device::Implementation& {
    return implementation;
  };
  return options;
}

TEST(TiledProblem, OneWrongRowIsFoundWhereverItIs) {
  const Case which = find_case("rms_norm/tokens_1025/eager");
  int found = 0;
  const std::vector<std::int64_t> rows = {0, 1, 63, 64, 500, 511, 777, 1000, 1023, 1024};
  for (const std::int64_t row : rows) {
    const CaseResult result = run_case(which, with_faulty_row(sampling(32), row));
    // With a probability of 1/16 the other row has the same inputs, and the fault changes nothing.
    if (result.outcome != Outcome::failed) continue;
    ++found;
    const std::string named =
        fmt::format("bits as a wrong row, 1 of 1025 rows (row {}) is wrong", row);
    EXPECT_NE(report_of(result).find(named), std::string::npos) << report_of(result);
  }
  EXPECT_GE(found, 8);
}

// ---- what reports say about samples ----

TEST(TiledProblem, ASampleIsNeverTakenForAllRows) {
  const Case which = find_case("rms_norm/tokens_1025/eager");
  tools::Finished finished{
      run_case(which, sampling(16)), {}, {}, "rms_norm", "tokens_1025", "eager", ""};
  const std::string summary = tools::summary_text({finished}, 1, {});
  EXPECT_NE(summary.find("sampled    1 cases: "), std::string::npos) << summary;
  EXPECT_NE(summary.find(" rows judged; "), std::string::npos) << summary;
  const std::string json = tools::to_json({.all = {finished}, .tier = "full"});
  EXPECT_NE(json.find("\"sampled\": 1"), std::string::npos);
  EXPECT_NE(json.find("\"repeat_a_judged_row\""), std::string::npos);
  EXPECT_NE(json.find("\"unjudged\": 0"), std::string::npos);
}

TEST(TiledProblem, TheSeedDecidesWhichRowsRepeatWhich) {
  const Case which = find_case("rms_norm/tokens_1025/eager");
  const auto inputs = [&](std::uint64_t seed) {
    const std::unique_ptr<Problem> problem = make_problem(which, sampling(16), false);
    TensorSet tensors = problem->make_tensors();
    problem->fill({.seed = seed, .live = 1000}, tensors);
    return tensors.at("x").bytes();
  };
  EXPECT_EQ(inputs(1), inputs(1));
  EXPECT_NE(inputs(1), inputs(2));
}

TEST(TiledProblem, EveryProductionRowIsMadeAndFitsTheDevice) {
  int rows = 0;
  for (const Case& which : all_cases()) {
    if (!which.row.real_only || which.scenario->mode != Scenario::Mode::eager) continue;
    ++rows;
    RunOptions options;
    options.platform = kPlatform;
    double bytes = 0;
    const TensorSet tensors = make_problem(which, options, false)->make_tensors();
    for (const HostTensor& tensor : tensors.all()) {
      bytes += static_cast<double>(device_bytes(tensor));
    }
    EXPECT_LT(bytes, 30e9) << which.id() << ", which the graph's scenario has nearly twice";
    EXPECT_EQ(run_case(which, options).outcome, Outcome::skipped) << which.id();
  }
  EXPECT_GT(rows, 40);
}

// ---- shapes ----

TEST(RowAxis, IsTheDimensionThatGrows) {
  const TensorSpec large{.name = "sums", .shape = {4, 60, 24}},
      small{.name = "sums", .shape = {4, 6, 24}};
  const auto axis = find_row_axis(large, 20, small, 2);
  ASSERT_TRUE(axis.has_value());
  EXPECT_EQ(axis->dimension, 1);
  EXPECT_EQ(axis->per_row, 3);
  EXPECT_FALSE(find_row_axis(large, 20, large, 2).has_value());
  EXPECT_THROW(find_row_axis(large, 20, small, 3), std::logic_error);
  EXPECT_THROW(find_row_axis(large, 20, {.name = "sums", .shape = {2, 6, 24}}, 2),
               std::logic_error);
}

TEST(RowAxis, PiecesAreTheElementsOfARow) {
  const HostTensor strided({.name = "x", .shape = {6, 2, 3}, .strides = {10, 4, 1}});
  const RowPieces two_each(strided.spec(), {0, 2});
  EXPECT_EQ(two_each.length(), 3);
  ASSERT_EQ(two_each.count(), 4);
  EXPECT_EQ(two_each.offset(1, 0), 20);
  EXPECT_EQ(two_each.offset(1, 3), 34);
  const HostTensor columns({.name = "s", .shape = {3, 8}});
  const RowPieces column(columns.spec(), {1, 1});
  EXPECT_EQ(column.length(), 1);
  ASSERT_EQ(column.count(), 3);
  EXPECT_EQ(column.offset(5, 2), 21);
  EXPECT_EQ(tensor_rows(strided.spec(), {0, 2}, 1), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(problem_row(strided.spec(), {0, 2}, 6), 1);
}

TEST(Excerpt, IsNumberedAsTheTensorThatItIsOf) {
  TensorSpec spec{.name = "x", .shape = {2, 3, 4}};
  spec.excerpt = {0, {5, 70}, 100};
  const HostTensor tensor(spec);
  EXPECT_EQ(tensor.original_rows(), 300);
  EXPECT_EQ(tensor.original_row(4), 211);
  EXPECT_EQ(tensor.coordinates(4, 2), "[70, 1, 2]");
}

// ---- verdicts that are known from an earlier launch ----

int launches = 0, right_launches = 0;
plumb_status launch_wrong_later(const void* params) {
  faulty_row = 3;
  return ++launches > right_launches ? launch_with_fault(params) : right_launch(params);
}

TEST(KnownVerdicts, HideNoFaultOfALaterLaunch) {
  Case which = find_case("rms_norm/tokens_256/eager");
  RunOptions options = with_faulty_row(sampling(16), 3);
  options.verdict_budget = HUGE_VAL;
  device::OpEntry entry = options.implementation(kPlatform, false).entries.front();
  entry.launch = launch_wrong_later;
  const device::Implementation implementation{"wrong later", {entry}};
  options.implementation = [&](std::string_view, bool) -> const device::Implementation& {
    return implementation;
  };
  options.tier = Tier::full;
  const auto points =
      static_cast<int>(choose_points(which, *make_problem(which, options, false), options).size());
  ASSERT_GT(points, 3);
  for (right_launches = 0; right_launches < 2 * points; right_launches += points) {
    launches = 0;
    const CaseResult result = run_case(which, options);
    EXPECT_EQ(result.outcome, Outcome::failed) << right_launches << " right launches";
    EXPECT_NE(report_of(result).find("1 of 256 rows (row 3)"), std::string::npos)
        << report_of(result);
  }
  right_launches = 2 * points;
  launches = 0;
  EXPECT_EQ(run_case(which, options).outcome, Outcome::passed);
}

}  // namespace tiled_problem_test

}  // namespace plumb::cases
