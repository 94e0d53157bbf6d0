// SPDX-License-Identifier: Apache-2.0
//
// Effects of a changed kernel on goldens: it is seen in exactly the cases whose results move. On
// the recorded toolchain that is a failure. On another one it is drift while within the bounds.
#include "golden/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "faults/faults.h"
#include "golden/dependence.h"
#include "golden/regenerate.h"
#include "reference/formats/bfloat16.h"
#include "tests/golden/golden_cases.h"
#include "tests/support/rows_and_cases.h"
#include "tools/golden/golden_check.h"
#include "tools/report.h"
#include "tools/result_codec.h"

namespace plumb::golden {
namespace compare_test {

// Later launches of the case run under other conditions (thread order, poison, checked kernels),
// and are not the golden's.
TEST(GoldenCompareTest, TheFirstLaunchOfACaseIsTheOneThatItsGoldenIsAbout) {
  for (const char* op : {"rms_norm", "top_k_per_row_decode", "mhc_pre"}) {
    for (const cases::Case& which : cases_of(op)) {
      cases::RunOptions options = options_on("sim-gfx942");
      std::vector<std::string> launched;
      options.on_real_launch = [&](const cases::Problem& problem, const cases::Launched& launch) {
        launched.push_back(results_digest(golden_of(which, problem, launch)));
      };
      cases::run_case(which, options);
      const GoldenCapture capture(which, options_on("sim-gfx942"));
      EXPECT_EQ(launched, std::vector{results_digest(capture.golden())}) << which.id();
    }
  }
}

TEST(GoldenCompareTest, RegeneratingTheSameKernelsChangesNothing) {
  const auto wanted = cases_of("rms_norm");
  const GoldenFile stored = goldens_of("rms_norm");
  ASSERT_GT(stored.cases.size(), 10u);
  const Author later{"another commit", "generator", "another reason"};
  const GoldenChanges again =
      difference_of(stored, wanted, ids_of(wanted), options_on("sim-sm90"), later);
  EXPECT_TRUE(again.changes.empty());
  EXPECT_EQ(again.unchanged, static_cast<int>(wanted.size()));
  EXPECT_EQ(again.next.history, stored.history);
  EXPECT_EQ(again.next.cases[0].provenance, stored.cases[0].provenance);
}

TEST(GoldenCompareTest, OneRoundingShowsInExactlyTheCasesThatItMoves) {
  const auto wanted = cases_of("rms_norm");
  const GoldenFile stored = goldens_of("rms_norm");
  std::set<std::string> moved, listed;
  for (const cases::Case& which : wanted) {
    const GoldenCapture before(which, options_on("sim-sm90")), after(which, rounded_up("sim-sm90"));
    if (before.outputs()[0].values != after.outputs()[0].values) moved.insert(which.id());
  }
  const GoldenChanges difference =
      difference_of(stored, wanted, ids_of(wanted), rounded_up("sim-sm90"), kAuthor);
  for (const Change& change : difference.changes) {
    listed.insert(change.id);
    EXPECT_EQ(change.kind, Change::Fate::moved);
    EXPECT_TRUE(change.rejected.empty()) << change.rejected[0];
    ASSERT_EQ(change.drifts.size(), 1u);
    const TensorDrift& drift = change.drifts[0];
    EXPECT_GT(drift.rows_moved, 0);
    EXPECT_LE(drift.ulp, 1);
    EXPECT_LE(drift.of_bound, kNear);
    if (drift.elements_moved == 0) continue;
    EXPECT_NE(text_of(change).find("by ulp: 1: "), std::string::npos);
  }
  EXPECT_EQ(listed, moved);
  EXPECT_GE(moved.size(), 3u);
  EXPECT_LT(moved.size(), wanted.size()) << "no case stays, so that nothing is shown";
  EXPECT_EQ(difference.next.history.size(), stored.history.size() + 1);
}

TEST(GoldenCompareTest, MovedBitsFailOnTheRecordedToolchainAndDriftOnAnother) {
  const cases::Case which = first_moved_case();
  CaseGolden golden = *goldens_of("rms_norm").find(which.id());
  const GoldenCapture moved(which, rounded_up("sim-sm90"));
  const GoldenComparison failed = compare(golden, moved, false);
  EXPECT_EQ(failed.agreement, Agreement::failed);
  ASSERT_FALSE(failed.lines.empty());
  EXPECT_NE(failed.lines[0].find("rows moved"), std::string::npos) << failed.lines[0];

  golden.provenance["compiler"] = "another one";
  const GoldenComparison drifted = compare(golden, moved, false);
  EXPECT_NE(drifted.agreement, Agreement::failed);
  EXPECT_NE(drifted.agreement, Agreement::same);
  EXPECT_NE(drifted.toolchain.find("recorded: another one"), std::string::npos);
  const TensorDrift& drift = drifted.drifts.at(0);
  EXPECT_EQ(drift.of_bound >= 0, drift.elements_moved > 0) << "a share is of stored elements";
  EXPECT_EQ(compare(golden, moved, true).agreement, Agreement::failed) << "exact";
  const GoldenCapture same(which, options_on("sim-sm90"));
  EXPECT_EQ(compare(golden, same, false).agreement, Agreement::same);
}

// Moves one weight away from its golden by `share` of the largest difference of two right results.
GoldenComparison compare_moved(double share) {
  const cases::Case which = cases::find_case("sqrt_softplus_topk/one_token/eager");
  const GoldenCapture capture(which, options_on("sim-sm90"));
  CaseGolden golden = capture.golden();
  golden.provenance = provenance_of("sqrt_softplus_topk", capture.device());
  golden.provenance["compiler"] = "another one";
  const auto weights = std::find_if(golden.outputs.begin(), golden.outputs.end(),
                                    [](const auto& t) { return t.dtype == cases::Dtype::f32; });
  const GoldenCapture::Bounds& bounds = *capture.bounds_of(weights->name);
  float value = 0;
  std::memcpy(&value, weights->values.data(), sizeof value);
  value += static_cast<float>(bounds.rounding.at(0) + share * bounds.arithmetic.at(0));
  std::memcpy(weights->values.data(), &value, sizeof value);
  weights->digest = digest_of(weights->values);
  return compare(golden, capture, false);
}

TEST(GoldenCompareTest, DriftIsWarnedOfNearItsBoundAndFailsBeyond) {
  EXPECT_EQ(compare_moved(0.4).agreement, Agreement::drifted);
  EXPECT_EQ(compare_moved(kNear + 0.1).agreement, Agreement::near_bound);
  const GoldenComparison beyond = compare_moved(1.1);
  EXPECT_EQ(beyond.agreement, Agreement::failed);
  EXPECT_NE(beyond.lines.back().find("differs more than two right results can"), std::string::npos);
}

TEST(GoldenCompareTest, OtherInputsFailOnAnyToolchain) {
  const cases::Case which = cases::find_case("rms_norm/hidden_1/eager");
  const GoldenCapture capture(which, options_on("sim-sm90"));
  CaseGolden golden = capture.golden();
  golden.provenance = {{"compiler", "another one"}};
  golden.inputs["x"] = std::string(32, '0');
  const GoldenComparison comparison = compare(golden, capture, false);
  EXPECT_EQ(comparison.agreement, Agreement::failed);
  EXPECT_EQ(comparison.lines.at(0), "golden: inputs: x has other values");
}

TEST(GoldenCompareTest, ACaseThatIsGoneIsRemovedAndOneThatWasNotAskedForStays) {
  const auto wanted = cases_of("rms_norm");
  const GoldenFile stored = goldens_of("rms_norm");
  const std::vector<cases::Case> one{wanted.front()};
  EXPECT_TRUE(
      difference_of(stored, one, ids_of(wanted), options_on("sim-sm90"), kAuthor).changes.empty());
  std::vector<std::string> known = ids_of(wanted);
  known.pop_back();
  const GoldenChanges difference =
      difference_of(stored, one, known, options_on("sim-sm90"), kAuthor);
  ASSERT_EQ(difference.changes.size(), 1u);
  EXPECT_EQ(difference.changes[0].kind, Change::Fate::removed);
  EXPECT_EQ(difference.changes[0].id, wanted.back().id());
}

TEST(GoldenCompareTest, ADependenceIsFoundByChangingOneTrait) {
  const auto dependence = [](const std::string& id) {
    const cases::Case which = cases::find_case(id);
    const cases::RunOptions options = options_on("sim-sm90");
    return dependence_of(which, options, GoldenCapture(which, options));
  };
  EXPECT_EQ(dependence("concat_and_cache_ds_mla/one_token/eager"), "FP8 dialect");
  EXPECT_EQ(dependence("sparse_mla_decode/width_of_no_whole_block/eager"),
            "FP8 dialect, split plan");
  EXPECT_EQ(dependence("rms_norm/hidden_1/eager"), "nothing");
  EXPECT_EQ(dependence("hc_head/exact_points/eager"), "wave order");
}

// Causes that golden diff names for two simulated platforms.
TEST(GoldenCompareTest, PlatformsDifferForReasonsThatHaveNames) {
  const auto golden_on = [](const std::string& platform, const std::string& id) {
    const std::vector<cases::Case> wanted{cases::find_case(id)};
    GoldenFile none = empty_file(std::string(wanted[0].op->name));
    none.platform = platform;
    return difference_of(none, wanted, ids_of(wanted), options_on(platform), kAuthor)
        .next.cases.at(0);
  };
  const auto causes = [&](const std::string& id, const std::string& other) {
    return causes_of(golden_on("sim-sm90", id), golden_on(other, id));
  };
  EXPECT_EQ(causes("hc_head/exact_points/eager", "sim-gfx942"), "wave order");
  EXPECT_EQ(causes("concat_and_cache_ds_mla/one_token/eager", "sim-gfx942"), "FP8 dialect");
  EXPECT_EQ(causes("concat_and_cache_ds_mla/one_token/eager", "sim-gfx950"), "");
  EXPECT_EQ(causes("sparse_mla_decode/v32_extra_cache/eager", "sim-gfx942"), "split plan");
}

TEST(GoldenCompareTest, AComparisonSurvivesTheWayFromAWorker) {
  tools::Finished finished;
  finished.golden.agreement = Agreement::near_bound;
  finished.golden.toolchain = "compiler";
  finished.golden.lines = {"a line"};
  TensorDrift drift{.tensor = "out", .rows = 4, .rows_moved = 2, .where = "row 0", .other = "new"};
  drift.elements = 9;
  drift.elements_moved = 3;
  drift.ulp = 2.5;
  drift.of_bound = 0.8;
  drift.histogram[7] = 3;
  finished.golden.drifts = {drift};
  const golden::GoldenComparison got =
      process::decode<tools::Finished>(process::encode(finished)).golden;
  EXPECT_EQ(got.agreement, Agreement::near_bound);
  EXPECT_EQ(got.toolchain, "compiler");
  EXPECT_EQ(got.lines, finished.golden.lines);
  ASSERT_EQ(got.drifts.size(), 1u);
  EXPECT_EQ(text_of(got.drifts[0]), text_of(drift));
  EXPECT_EQ(got.drifts[0].histogram, drift.histogram);
  EXPECT_EQ(got.drifts[0].elements_moved, 3);
  EXPECT_EQ(got.drifts[0].ulp, 2.5);
  EXPECT_EQ(got.drifts[0].of_bound, 0.8);
  const std::string json = tools::to_json_line(finished);
  EXPECT_NE(json.find("\"agreement\":\"near_bound\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"of_bound\":0.8"), std::string::npos) << json;
  const std::string summary = tools::summary_text({finished}, 1, {});
  EXPECT_NE(summary.find("warning: goldens near a bound"), std::string::npos) << summary;
}

TEST(GoldenCompareTest, AMissingGoldenFailsWhereThePlatformHasAny) {
  const std::string folder = testing::TempDir() + "/some_goldens_" + std::to_string(getpid());
  const cases::Case which = cases::find_case("rms_norm/hidden_1/eager");
  const cases::Case other = cases::find_case("hc_head/exact_points/eager");
  Store store(folder);
  EXPECT_EQ(tools::GoldenChecker(folder).check(which, options_on("sim-sm90"), false).agreement,
            Agreement::no_goldens);
  const std::vector<cases::Case> wanted{which};
  store.replace({difference_of(empty_file("rms_norm"), wanted, ids_of(wanted),
                               options_on("sim-sm90"), kAuthor)
                     .next});
  tools::GoldenChecker checker(folder);
  EXPECT_EQ(checker.check(which, options_on("sim-sm90"), false).agreement, Agreement::same);
  EXPECT_EQ(checker.check(other, options_on("sim-sm90"), false).agreement, Agreement::failed);
  EXPECT_EQ(checker.check(which, options_on("sim-gfx942"), false).agreement, Agreement::no_goldens);
  std::filesystem::remove_all(folder);
}

}  // namespace compare_test
}  // namespace plumb::golden
