// SPDX-License-Identifier: Apache-2.0
//
// plumb agreement --plugin: compares two implementations on the same cases. The libraries are
// tests/must_fail/plugins.
#include "tests/support/command_line.h"

namespace plumb {
namespace plugin_agreement_test {

std::string library(const std::string& name) {
  return std::string(PLUMB_TEST_PLUGINS) + "/" + name + ".so";
}

class PluginAgreement : public CommandLine {
 protected:
  Words words_of(const Words& plugins, const std::string& pattern) const {
    Words words{"agreement",  "--case",   pattern,  "--tier",           "smoke",
                "--platform", "sim-sm90", "--json", path("report.json")};
    for (const std::string& name : plugins) {
      words.insert(words.end(), {"--plugin", library(name)});
    }
    return words;
  }
  std::string printed(const Words& plugins, const std::string& pattern, int code) const {
    const Finished finished = run(words_of(plugins, pattern));
    EXPECT_EQ(finished.code, code) << finished.out << finished.err;
    EXPECT_EQ(finished.err, "");
    return finished.out;
  }
  static void expect(const std::string& text, const std::string& says) {
    EXPECT_NE(text.find(says), std::string::npos) << "want " << says << "\n" << text;
  }
};

TEST_F(PluginAgreement, AKernelAgainstItselfHasTheSameBits) {
  const std::string text = printed({"launches_right", "launches_right"}, "*rms_norm", 0);
  expect(text, "2 with the same bits, 0 within the bounds, 0 beyond them or wrong");
}

// The plug-in sums sequentially, plumb in a tree of 256.
TEST_F(PluginAgreement, AnotherOrderOfTheSumIsWithinTheBounds) {
  const std::string text = printed({"launches_right"}, "rms_norm/hidden_769/eager", 0);
  expect(text, "against plumb's own kernels");
  expect(text, "0 with the same bits, 1 within the bounds");
  expect(contents(path("report.json")), "\"beyond\": false");
}

TEST_F(PluginAgreement, AChangeThatIgnoresTheWeightIsBeyondThem) {
  const std::string text =
      printed({"launches_right", "launches_ignores_weight"}, "rms_norm/v4_pro_hidden/eager", 1);
  expect(text, "out differs more than two right results can, ");
  expect(text, "launches_ignores_weight.so) is wrong: ");
  EXPECT_EQ(text.find("launches_right.so) is wrong"), std::string::npos) << text;
  expect(text, "0 within the bounds, 1 beyond them or wrong");
  expect(contents(path("report.json")), "\"beyond\": true");
}

// The first plug-in is the base.
TEST_F(PluginAgreement, AChangeThatRepairsTheBaseIsNotTheWrongOne) {
  const std::string text =
      printed({"launches_ignores_weight", "launches_right"}, "rms_norm/v4_pro_hidden/eager", 1);
  expect(text, "launches_ignores_weight.so) is wrong: ");
  EXPECT_EQ(text.find("launches_right.so) is wrong"), std::string::npos) << text;
}

TEST_F(PluginAgreement, ACrashOrAHangIsThatOfItsSide) {
  const std::string text =
      printed({"launches_right", "launches_crash_in_kernel"}, "rms_norm/v4_pro_hidden/eager", 1);
  expect(text, "launches_crash_in_kernel.so) is wrong: ");
  const std::string base =
      printed({"launches_crash_in_launcher", "launches_right"}, "rms_norm/v4_pro_hidden/eager", 1);
  expect(base, "launches_crash_in_launcher.so) is wrong: crash: ");
}

TEST_F(PluginAgreement, ContractsThatContradictEachOtherAreNotCompared) {
  const Finished finished =
      run(words_of({"launches_rounds_once", "launches_wrong_contract"}, "rms_norm/*/eager"));
  EXPECT_EQ(finished.code, 2) << finished.out;
  expect(finished.out, "not compared: the contracts differ");
}

TEST_F(PluginAgreement, OpsOfOneSideAreNamed) {
  Words words = words_of({"launches_right", "tables_right_table"}, "rms_norm/v4_pro_hidden/eager");
  words.insert(words.end(), {"--case", "q_kv_rms_norm/*", "--case", "hc_head/*"});
  const Finished finished = run(words);
  expect(finished.out, "has q_kv_rms_norm");
}

TEST_F(PluginAgreement, WhatCannotBeComparedIsOneLine) {
  expect_refused(words_of({"absent"}, "rms_norm"), "No such file or directory");
  expect_refused(words_of({"launches_right"}, "hc_head"),
                 "no eager case is selected whose op both implementations have");
  expect_refused(words_of({"launches_right", "launches_right", "launches_right"}, "rms_norm"),
                 "agreement compares two plug-ins at most");
  Words none = words_of({}, "rms_norm");
  none.insert(none.end(), {"--plugin", ""});
  expect_refused(none, "--plugin: names no file");
}

}  // namespace plugin_agreement_test
}  // namespace plumb
