// SPDX-License-Identifier: Apache-2.0
//
// plumb run --plugin for decode steps: the plug-in's kernels replace plumb's own, and a finding
// names the owner of its op. The libraries are tests/must_fail/plugins.
#include "tests/support/command_line.h"

namespace plumb {
namespace plugin_steps_test {

class PluginSteps : public CommandLine {
 protected:
  Finished run_steps(const std::string& name, const Words& more = {},
                     const std::string& row = "v4") const {
    const std::string library = std::string(PLUMB_TEST_PLUGINS) + "/" + name + ".so";
    Words words{"run", "--platform", "sim-sm90", "--set", "steps=2", "--json", path("report.json")};
    words.insert(words.end(), {"--case", "decode_step/" + row + "/full", "--plugin", library});
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  static void expect(const std::string& text, const std::string& says) {
    EXPECT_NE(text.find(says), std::string::npos) << "want " << says << "\n" << text;
  }
};

TEST_F(PluginSteps, RightKernelsPassAndPlumbsOwnStandInForAllOthers) {
  const Finished finished = run_steps("launches_right");
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_EQ(finished.err, "");
  expect(finished.out, "\n1 passed, 0 failed");
}

TEST_F(PluginSteps, AWrongKernelFailsAndIsNamedWithItsOwner) {
  const Finished finished = run_steps("launches_ignores_weight");
  EXPECT_EQ(finished.code, 1) << finished.out << finished.err;
  expect(finished.out, "q_kv_rms_norm (plug-in launches; layer 0 q and kv norm): reference: ");
  expect(finished.out, " --plugin ");
  EXPECT_EQ(finished.out.find("plumb's own;"), std::string::npos) << finished.out;
}

TEST_F(PluginSteps, InThisProcessTheFindingIsTheSame) {
  EXPECT_EQ(run_steps("launches_right", {"--in-process"}).code, 0);
  const Finished finished = run_steps("launches_ignores_weight", {"--in-process"});
  EXPECT_EQ(finished.code, 1) << finished.out << finished.err;
  expect(finished.out, "q_kv_rms_norm (plug-in launches; layer 0 q and kv norm): reference: ");
}

TEST_F(PluginSteps, ACrashCostsTheCase) {
  const Finished finished = run_steps("launches_crash_in_launcher");
  EXPECT_EQ(finished.code, 1) << finished.out << finished.err;
  EXPECT_EQ(finished.err, "");
  expect(finished.out, "FAIL  decode_step/v4/full");
  expect(finished.out, "crash: its process ended with signal 11");
}

TEST_F(PluginSteps, ARefusedCallIsThatOfThePlugIn) {
  const Finished finished = run_steps("launches_refuses");
  EXPECT_EQ(finished.code, 1) << finished.out << finished.err;
  expect(finished.out, "(plug-in launches; capture): error: ");
}

// The contexts of this row are shorter than the top-k, so it does not call the plug-in's op.
TEST_F(PluginSteps, StepsThatCallNoOpOfThePlugInProveNothing) {
  const Finished finished = run_steps("selects_right", {}, "v4_burst");
  EXPECT_EQ(finished.code, 2) << finished.out << finished.err;
  expect(finished.out, "the step calls no op that selects has");
}

// Mutants are plumb's own kernels, which the plug-in's process does not have.
TEST_F(PluginSteps, APlantedKernelIsNotPutBesideAPlugIn) {
  const Finished finished = run_steps("launches_right", {"--set", "fault=hc_eps_lost"});
  EXPECT_EQ(finished.code, 2) << finished.out << finished.err;
  expect(finished.out, "the planted kernel is missing in the process of a plug-in");
}

// Runs plumb faults --clean with a plug-in: random steps, 10 of one schedule.
class PluginCleanSteps : public CommandLine {
 protected:
  Finished run_clean(const std::string& name, const Words& more = {}) const {
    const std::string library = std::string(PLUMB_TEST_PLUGINS) + "/" + name + ".so";
    Words words{"faults", "--clean", "10", "--platform", "sim-sm90", "--plugin", library};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

TEST_F(PluginCleanSteps, OfRightKernelsRaiseNoAlarm) {
  const Finished finished = run_clean("launches_right");
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_NE(finished.out.find("without a fault: 10 steps in 1 schedules, "), std::string::npos);
  EXPECT_NE(finished.out.find(" 0 alarms\npassed\n"), std::string::npos) << finished.out;
}

TEST_F(PluginCleanSteps, OfAWrongKernelNameItsOpAndOwner) {
  const Finished finished = run_clean("launches_ignores_weight");
  EXPECT_EQ(finished.code, 1) << finished.out << finished.err;
  EXPECT_NE(finished.out.find("ALARM  sim-sm90: 0: "), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("q_kv_rms_norm (plug-in launches; layer 0 q and kv norm): "),
            std::string::npos)
      << finished.out;
}

TEST_F(PluginCleanSteps, AreForCleanStepsAndAPlugInThatExists) {
  expect_refused({"faults", "--plugin", "/dev/null"}, "--plugin is for --clean");
  expect_refused({"faults", "--clean", "5", "--plugin", path("absent.so")}, "absent.so");
}

}  // namespace plugin_steps_test
}  // namespace plumb
