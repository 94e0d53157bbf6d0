// SPDX-License-Identifier: Apache-2.0
//
// plumb run --expect-kernel: a library that falls back to another kernel fails, although its
// results are right.
#include "tests/support/command_line.h"

namespace plumb {
namespace expect_kernel_test {

class ExpectKernel : public CommandLine {
 protected:
  Finished run_expecting(const Words& patterns, const Words& more = {}) const {
    Words words{
        "run",    "--case",           "rms_norm/hidden_769/full_graph", "--platform", "sim-sm90",
        "--json", path("report.json")};
    for (const std::string& pattern : patterns) {
      words.insert(words.end(), {"--expect-kernel", pattern});
    }
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  static Words plugin() {
    return {"--plugin", std::string(PLUMB_TEST_PLUGINS) + "/launches_right.so"};
  }
};

TEST_F(ExpectKernel, AMatchPasses) {
  EXPECT_EQ(run_expecting({"rms_norm_kernel"}, plugin()).code, 0);
  EXPECT_EQ(run_expecting({"rms_*", "*_kernel"}, plugin()).code, 0);
}

TEST_F(ExpectKernel, AnotherKernelFailsTheCaseAndIsNamed) {
  const Finished finished = run_expecting({"rms_*", "fast_*"}, plugin());
  EXPECT_EQ(finished.code, 1) << finished.out;
  EXPECT_NE(finished.out.find("no captured kernel matches fast_*: rms_norm_kernel"),
            std::string::npos)
      << finished.out;
  EXPECT_NE(finished.out.find(" --expect-kernel 'rms_*' --expect-kernel 'fast_*'"),
            std::string::npos)
      << finished.out;
  EXPECT_EQ(finished.out.find("looks like"), std::string::npos) << finished.out;
}

TEST_F(ExpectKernel, KernelsOfPlumbsOwnHaveNamesToo) {
  EXPECT_EQ(run_expecting({"*norm*"}).code, 0);
  EXPECT_EQ(run_expecting({"no_such_kernel"}).code, 1);
}

TEST_F(ExpectKernel, CasesThatCaptureNothingAreNoProof) {
  expect_refused({"run", "--case", "rms_norm/hidden_769/eager", "--expect-kernel", "rms_*",
                  "--json", path("report.json")},
                 "--expect-kernel: no selected case of an op has a graph that is checked");
  expect_refused({"run", "--case", "rms_norm", "--expect-kernel", ""}, "--expect-kernel: ");
}

}  // namespace expect_kernel_test
}  // namespace plumb
