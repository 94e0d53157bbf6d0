// SPDX-License-Identifier: Apache-2.0
//
// The points of a case, and how platforms that run the same kernels divide them.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cases/drivers/run.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace {

std::set<std::string> points_on(const std::string& platform, Tier tier) {
  const Case which = find_case("rms_norm/v4_pro_hidden/eager");
  RunOptions options;
  options.platform = platform;
  options.tier = tier;
  std::set<std::string> texts;
  for (const Point& point : choose_points(which, *make_problem(which, options, false), options)) {
    texts.insert(point.text() + " dead rows " + std::to_string(point.first_dead_rows));
  }
  return texts;
}

TEST(Points, AreDividedAmongPlatformsThatRunTheSameKernels) {
  const std::set<std::string> all = points_on("sim-sm90", Tier::standard);
  const std::set<std::string> even = points_on("sim-gfx942", Tier::standard);
  const std::set<std::string> odd = points_on("sim-gfx950", Tier::standard);
  EXPECT_LT(even.size(), all.size());
  EXPECT_LT(odd.size(), all.size());
  std::set<std::string> both = even;
  both.insert(odd.begin(), odd.end());
  EXPECT_EQ(both, all);
}

TEST(Points, OfTheFullTierRunEverywhere) {
  const std::set<std::string> all = points_on("sim-sm90", Tier::full);
  EXPECT_EQ(points_on("sim-gfx942", Tier::full), all);
  EXPECT_EQ(points_on("sim-gfx950", Tier::full), all);
}

}  // namespace
}  // namespace plumb::cases
