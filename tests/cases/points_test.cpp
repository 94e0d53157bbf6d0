// SPDX-License-Identifier: Apache-2.0
//
// The points of a case, and how platforms that run the same kernels divide them.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cases/drivers/run.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace points_test {

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

std::vector<Point> points_of(const std::string& id, Tier tier) {
  const Case which = find_case(id);
  RunOptions options;
  options.platform = "sim-sm90";
  options.tier = tier;
  return choose_points(which, *make_problem(which, options, false), options);
}

TEST(Points, TheFirstOfEachFillHaveThreadOrdersOfTheirOwn) {
  for (const char* id : {"rms_norm/kv_latent_slice/eager", "mhc_pre/one_token/full_graph",
                         "top_k_per_row_decode/ties_at_the_threshold/eager"}) {
    const std::vector<Point> points = points_of(id, Tier::standard);
    ASSERT_GE(points.size(), 3u) << id;
    std::set<Fill> fills;
    std::set<device::Order> orders;
    for (std::size_t i = 0; i < 3; ++i) {
      fills.insert(points[i].fill);
      orders.insert(points[i].conditions.order);
    }
    EXPECT_EQ(fills.size(), 3u) << id;
    EXPECT_EQ(orders.size(), 3u) << id;
  }
}

TEST(Points, TooDearForTheirTierTakeTheFirstStepsOnly) {
  const std::vector<Point> dear = points_of("mhc_pre/rows_1025/full_graph", Tier::standard);
  ASSERT_EQ(dear.size(), 1u);
  EXPECT_EQ(dear.front().most_steps, 3);
  for (const auto& [id, tier] :
       {std::pair{"mhc_pre/rows_1025/full_graph", Tier::full},
        std::pair{"rms_norm/kv_latent_slice/full_graph", Tier::standard}}) {
    const std::vector<Point> points = points_of(id, tier);
    EXPECT_GE(points.size(), 3u) << id;
    for (const Point& point : points) EXPECT_FALSE(point.most_steps.has_value()) << id;
  }
}

std::vector<Point> points_on_platform(const std::string& id, const std::string& platform) {
  const Case which = find_case(id);
  RunOptions options;
  options.platform = platform;
  return choose_points(which, *make_problem(which, options, false), options);
}

TEST(Points, OfRowsThatVaryTheShapeAndOfReplaysAreOneOfEachFill) {
  for (const char* id : {"rms_norm/random_0/eager", "rms_norm/kv_latent_slice/full_graph"}) {
    for (const char* platform : {"sim-sm90", "sim-gfx942", "sim-gfx950"}) {
      std::set<Fill> fills;
      const std::vector<Point> points = points_on_platform(id, platform);
      for (const Point& point : points) fills.insert(point.fill);
      EXPECT_EQ(points.size(), 3u) << id << " " << platform;
      EXPECT_EQ(fills.size(), 3u) << id << " " << platform;
    }
    EXPECT_GT(points_of(id, Tier::full).size(), 3u) << id;
  }
}

TEST(Points, TheFirstAloneIsComparedWithOneMoreLaunch) {
  const Case which = find_case("rms_norm/kv_latent_slice/eager");
  RunOptions options;
  options.platform = "sim-sm90";
  const CaseResult result = run_case(which, options);
  ASSERT_GT(result.points, 3);
  EXPECT_EQ(result.launches, result.points + 1);
  options.foreign = true;
  const CaseResult foreign = run_case(which, options);
  EXPECT_EQ(foreign.launches, 2 * foreign.points);
  for (const Point& point : points_of(which.id(), Tier::full)) EXPECT_EQ(point.first_compared, 0);
  // Over poison of zeros an unwritten element passes if zero is expected, unless the launch is
  // repeated over other poison.
  for (const Point& point : points_of(which.id(), Tier::standard)) {
    EXPECT_TRUE(point.first_compared == 0 || point.poison != Poison::zero);
  }
}

// A plug-in's case compares each launch, and runs all steps, unless the default tier limits it to
// three.
TEST(Points, OfAPlugInLoseNothing) {
  const Case which = find_case("mhc_pre/rows_1025/full_graph");
  RunOptions options;
  options.platform = "sim-gfx950";
  options.foreign = true;
  for (const auto& [tier, steps] : {std::pair{Tier::smoke, std::optional<std::int64_t>()},
                                    std::pair{Tier::standard, std::optional<std::int64_t>(3)}}) {
    options.tier = tier;
    const auto points = choose_points(which, *make_problem(which, options, false), options);
    ASSERT_EQ(points.size(), 1u);
    EXPECT_EQ(points.front().most_steps, steps);
    EXPECT_EQ(points.front().first_compared, 0);
  }
  const std::vector<Point> own = points_of(which.id(), Tier::smoke);
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own.front().most_steps, 3);
  EXPECT_EQ(own.front().first_compared, 2);
}

TEST(Points, OfADearCaseOneOfThePlatformsTakesMore) {
  const auto only = [](const std::string& id, const std::string& platform) {
    const std::vector<Point> points = points_on_platform(id, platform);
    EXPECT_EQ(points.size(), 1u) << id;
    return points.front();
  };
  for (const char* row : {"mhc_pre/rows_1025/", "sparse_mla_decode/v32_tp8/"}) {
    const std::string replayed = std::string(row) + "full_graph",
                      eager = std::string(row) + "eager";
    std::multiset<std::int64_t> steps;
    int comparing = 0;
    for (const char* platform : {"sim-gfx942", "sim-gfx950"}) {
      steps.insert(only(replayed, platform).most_steps.value());
      comparing += only(eager, platform).first_compared == 0;
    }
    EXPECT_EQ(steps, (std::multiset<std::int64_t>{2, 3})) << row;
    EXPECT_EQ(comparing, 1) << row;
  }
}

}  // namespace points_test
}  // namespace plumb::cases
