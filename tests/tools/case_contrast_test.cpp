// SPDX-License-Identifier: Apache-2.0
//
// What the failing cases of an op have in common: a property that separates all of them from those
// that pass, and nothing where there is none.
#include "tools/run/case_contrast.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace case_contrast_test {

std::vector<tools::JudgedCase> judged(bool (*fails)(const Case&)) {
  static const std::vector<Case> of_op = cases_of(find_op("rms_norm"));
  std::vector<tools::JudgedCase> all;
  for (const Case& which : of_op) {
    if (which.tier() > Tier::standard) continue;
    all.push_back({&which, "sim-sm90", fails(which)});
  }
  return all;
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

TEST(CaseContrast, SaysNothingWhereNothingSeparates) {
  EXPECT_EQ(tools::case_contrast(judged([](const Case& which) {
              return std::hash<std::string>{}(which.row.name) % 2 == 0;
            })),
            "");
  EXPECT_EQ(tools::case_contrast(judged([](const Case&) { return true; })), "");
}

}  // namespace case_contrast_test
}  // namespace plumb::cases
