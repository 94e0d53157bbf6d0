// SPDX-License-Identifier: Apache-2.0
//
// Points as text, and cases that run at one given point.
#include "cases/drivers/point_text.h"

#include <gtest/gtest.h>

#include "cases/tables/case_file.h"
#include "faults/faults.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace point_text_test {

TEST(PointTexts, AreReadAsTheyAreWritten) {
  for (const char* text :
       {"plain", "fill=real", "fill=adversarial,poison=huge,order=random,policy=interleaved",
        "checked=yes,page_guards=yes,dead_rows=infinity", "order=random,seed=18446744073709551615",
        "dead_rows=foreign,live=1,steps=2", "live=0"}) {
    EXPECT_EQ(spec_of(point_from(text)), text);
  }
  EXPECT_EQ(spec_of(point_from("fill=exact,order=forward")), "plain");
}

TEST(PointTexts, OfWhatATierChoosesLoseNothing) {
  RunOptions options;
  options.platform = "sim-sm90";
  options.tier = Tier::full;
  const Case which = find_case("rms_norm/v4_pro_hidden/eager");
  for (const Point& point : choose_points(which, *make_problem(which, options, false), options)) {
    const Point again = point_from(spec_of(point));
    EXPECT_EQ(again.text(), point.text());
    EXPECT_EQ(again.first_dead_rows, point.first_dead_rows);
    EXPECT_EQ(again.conditions.seed, point.conditions.seed);
  }
}

TEST(PointTexts, RefuseWhatIsNone) {
  for (const char* text : {"", "fill", "fill=", "fill=realistic", "fil=real", "live=-1", "live=x",
                           "steps=0", "fill=real,", "live=99999999999", "seed=1x"}) {
    EXPECT_THROW(point_from(text), BadRow) << text;
  }
}

TEST(NamedPoints, AreTheOnlyOnesThatRun) {
  RunOptions options;
  options.platform = "sim-sm90";
  const Case which = find_case("rms_norm/kv_latent_slice/full_graph");
  const CaseResult all = run_case(which, options);
  EXPECT_GT(all.points, 1);
  EXPECT_EQ(all.failed_at, "");
  options.point = point_from("fill=real,live=1,steps=2");
  const CaseResult one = run_case(which, options);
  EXPECT_EQ(one.outcome, Outcome::passed);
  EXPECT_EQ(one.points, 1);
  options.point = point_from("fill=real,live=1");
  EXPECT_LT(one.launches, run_case(which, options).launches);
  // `one` compared one live row in each of two replays. Even the smallest compared batch of `all`
  // has more.
  EXPECT_LT(one.tensors.front().elements_compared * all.points,
            all.tensors.front().elements_compared);
}

TEST(NamedPoints, AreToldOfAFailure) {
  RunOptions options;
  options.platform = "sim-sm90";
  const Case which = find_case("rms_norm/v4_pro_hidden/full_graph");
  const CaseResult result = run_case(which, with_dead_replay(options));
  EXPECT_EQ(result.outcome, Outcome::failed);
  const auto points = choose_points(which, *make_problem(which, options, false), options);
  EXPECT_EQ(result.failed_at, spec_of(points.front()));
  options.point = point_from(result.failed_at);
  EXPECT_EQ(run_case(which, with_dead_replay(options)).failed_at, result.failed_at);
}

}  // namespace point_text_test
}  // namespace plumb::cases
