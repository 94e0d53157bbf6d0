// SPDX-License-Identifier: Apache-2.0
//
// plumb run with a plug-in that fails many cases: failures that look alike are one block, a summary
// stands at the end, and a run can stop early or repeat its failures.
#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"

namespace plumb {
namespace run_output_test {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class RunOutput : public CommandLine {
 protected:
  Words wrong_run(const Words& more) const {
    Words words{"run",
                "--plugin",
                std::string(PLUMB_TEST_PLUGINS) + "/launches_ignores_weight.so",
                "--platform",
                "sim-sm90",
                "--no-diagnosis",
                "--json",
                path("report.json")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  nlohmann::json report() const { return nlohmann::json::parse(contents(path("report.json"))); }
};

constexpr const char* kThree =
    "rms_norm/hidden_255/eager,rms_norm/hidden_257/eager,rms_norm/hidden_768/eager";

TEST_F(RunOutput, FailuresThatLookAlikeAreOneBlock) {
  const Finished finished = run(wrong_run({"--case", kThree}));
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(count(finished.out, "      at step 0"), 1u) << finished.out;
  EXPECT_NE(finished.out.find("FAIL  rms_norm/hidden_257/eager   sim-sm90   as "
                              "rms_norm/hidden_255/eager\n"),
            std::string::npos)
      << finished.out;
  const std::size_t summary =
      finished.out.find("\nfailures: 3 cases\n     3  rms_norm: out: wrong values\n");
  ASSERT_NE(summary, std::string::npos) << finished.out;
  EXPECT_GT(summary, finished.out.find("coverage: cases with at least one compared element"));
  EXPECT_NE(finished.out.find("rms_norm/hidden_768/eager (sim-sm90)", summary), std::string::npos);
}

TEST_F(RunOutput, JUnitNamesTheFirstFinding) {
  EXPECT_EQ(run(wrong_run({"rms_norm/hidden_255/eager", "--junit", path("junit.xml")})).code, 1);
  const std::string junit = contents(path("junit.xml"));
  EXPECT_NE(junit.find("<failure message=\"out: "), std::string::npos) << junit;
}

TEST_F(RunOutput, RightKernelsHaveNoSummaryOfFailures) {
  const Finished finished = run(small_run({}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.out.find("failures"), std::string::npos) << finished.out;
}

TEST_F(RunOutput, StopsAfterSoManyFailures) {
  const Finished first = run(wrong_run({"--case", kThree, "-x", "--jobs", "1"}));
  EXPECT_EQ(first.code, 1);
  EXPECT_NE(first.out.find("stopped after 1 failure: 1 of 3 cases done"), std::string::npos)
      << first.out;
  EXPECT_EQ(report()["cases"].size(), 1u);
  EXPECT_EQ(report()["exit_code"], 1);
  EXPECT_EQ(run(wrong_run({"--case", kThree, "--maxfail", "2", "--jobs", "1"})).code, 1);
  EXPECT_EQ(report()["cases"].size(), 2u);
}

TEST_F(RunOutput, RepeatsWhatFailed) {
  // This kernel is right for rows without a weight.
  const std::string both = "rms_norm/hidden_255/eager,rms_norm/head_dim_without_weight/eager";
  EXPECT_EQ(run(wrong_run({both})).code, 1);
  ASSERT_EQ(report()["cases"].size(), 2u);
  const Finished again = run(wrong_run({both, "--last-failed"}));
  EXPECT_EQ(again.code, 1);
  ASSERT_EQ(report()["cases"].size(), 1u) << again.out << again.err;
  EXPECT_EQ(report()["cases"][0]["case"], "rms_norm/hidden_255/eager");
}

TEST_F(RunOutput, RefusesAReportWithoutFailures) {
  expect_refused(wrong_run({"rms_norm", "--last-failed"}), "cannot read");
  write("other.json", "{}");
  expect_refused({"run", "rms_norm", "--json", path("other.json"), "--last-failed"},
                 "other.json is not a report of plumb run");
  EXPECT_EQ(run({"run", "rms_norm/hidden_1/eager", "--platform", "sim-sm90", "--json",
                 path("right.json")})
                .code,
            0);
  expect_refused({"run", "rms_norm", "--json", path("right.json"), "--last-failed"},
                 "no selected case failed in ");
}

TEST_F(RunOutput, NamesCasesWithoutAnOption) {
  EXPECT_EQ(run({"run", "rms_norm/hidden_1/eager", "hc_head/flash_two_tokens/eager", "--platform",
                 "sim-sm90", "--json", path("report.json")})
                .code,
            0);
  EXPECT_EQ(report()["cases"].size(), 2u);
}

TEST_F(RunOutput, RefusesANameThatIsNoCase) {
  expect_refused({"run", "rms_nrom", "--json", ""},
                 "no case matches --case rms_nrom (did you mean rms_norm?)");
  expect_refused({"run", "--case", "rms_norm/hiden_1", "--json", ""},
                 "no case matches --case rms_norm/hiden_1 (did you mean rms_norm/hidden_1?)");
  expect_refused({"run", "--case", "nothing_like_it", "--json", ""}, "; plumb list shows them");
}

}  // namespace run_output_test
}  // namespace plumb
