// SPDX-License-Identifier: Apache-2.0
//
// Finds a property that separates all failed cases of an op from the passed ones, and reports none
// if there is none.
#include "tools/run/case_contrast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace case_contrast_test {

std::vector<tools::JudgedCase> judged(bool (*fails)(const Case&),
                                      const std::string& platform = "sim-sm90") {
  static const std::vector<Case> of_op = cases_of(find_op("rms_norm"));
  std::vector<tools::JudgedCase> all;
  for (const Case& which : of_op) {
    if (which.tier() > Tier::standard) continue;
    all.push_back({&which, platform, fails(which)});
  }
  return all;
}

bool is_odd(const Case& which) { return which.row.integer("hidden") % 2 != 0; }
bool has_gaps(const Case& which) {
  const auto problem =
      which.op->make_problem(which.row, device::open_device("sim-sm90")->properties());
  const TensorSet tensors = problem->make_tensors();
  return tensors.at("x").extent() > tensors.at("x").elements();
}

void expect_begins(const std::string& text, const std::string& begin) {
  EXPECT_EQ(text.substr(0, begin.size()), begin);
}

TEST(CaseContrast, NamesTheLayoutOfRows) {
  const std::string text = tools::case_contrast(judged([](const Case& which) {
    return which.row.integers.contains("row_gap") && which.row.integer("row_gap") > 0;
  }));
  EXPECT_NE(text.find("row_gap"), std::string::npos) << text;
  EXPECT_EQ(text.find("fails in every row with row_gap >= "), 0u) << text;
}

TEST(CaseContrast, NamesTheScenario) {
  const std::string text = tools::case_contrast(
      judged([](const Case& which) { return which.scenario->name == "full_graph"; }));
  EXPECT_EQ(text.find("fails in every full_graph case ("), 0u) << text;
}

TEST(CaseContrast, NamesThePlatform) {
  std::vector<tools::JudgedCase> all = judged([](const Case&) { return false; });
  std::ranges::copy(judged([](const Case&) { return true; }, "sim-gfx942"),
                    std::back_inserter(all));
  expect_begins(tools::case_contrast(all), "fails in every sim-gfx942 case (");
}

TEST(CaseContrast, NamesTheLargestNumberThatFails) {
  expect_begins(tools::case_contrast(
                    judged([](const Case& which) { return which.row.integer("hidden") <= 257; })),
                "fails in every row with hidden <= 257 (");
}

TEST(CaseContrast, NamesWhatTheFailingRowsHave) {
  expect_begins(tools::case_contrast(judged(has_gaps)),
                "fails in every row where x has gaps between its rows (");
  expect_begins(tools::case_contrast(judged(is_odd)),
                "fails in every row where hidden is not a multiple of 2 (");
  expect_begins(tools::case_contrast(judged(
                    [](const Case& which) { return which.row.word("rounding") == "twice"; })),
                "fails in every row with rounding = twice (");
}

TEST(CaseContrast, NamesWhatThePassingRowsHave) {
  expect_begins(tools::case_contrast(judged([](const Case& which) { return !has_gaps(which); })),
                "passes in every row where x has gaps between its rows (");
  const std::string text =
      tools::case_contrast(judged([](const Case& which) { return !is_odd(which); }));
  expect_begins(text, "passes in every row where hidden is not a multiple of 2 (");
  EXPECT_NE(text.find(" rows), fails in all others ("), std::string::npos) << text;
}

// Computing layouts needs the tensors of every row, which may be large.
TEST(CaseContrast, TwoFailuresNeedNoTensors) {
  OpDefinition op = find_op("rms_norm");
  op.make_problem = [](const Row&, const device::Properties&) -> std::unique_ptr<Problem> {
    throw std::logic_error("no problem is needed");
  };
  std::vector<Case> cases;
  for (const tools::JudgedCase& one : judged([](const Case&) { return false; })) {
    if (one.which->scenario->name == "eager") cases.push_back(*one.which);
  }
  std::vector<tools::JudgedCase> all;
  for (Case& which : cases) {
    which.op = &op;
    all.push_back({&which, "sim-sm90", all.size() < 2});
  }
  EXPECT_EQ(tools::case_contrast(all), "");
  all[2].failed = true;
  EXPECT_THROW(tools::case_contrast(all), std::logic_error);
}

TEST(CaseContrast, SaysNothingWhereNothingSeparates) {
  EXPECT_EQ(tools::case_contrast(judged([](const Case& which) {
              const std::string& name = which.row.name;
              return std::accumulate(name.begin(), name.end(), 0) % 2 == 0;
            })),
            "");
  EXPECT_EQ(tools::case_contrast(judged([](const Case&) { return true; })), "");
}

}  // namespace case_contrast_test
}  // namespace plumb::cases
