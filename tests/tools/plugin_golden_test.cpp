// SPDX-License-Identifier: Apache-2.0
//
// Goldens of a plug-in's kernels: plumb golden and plumb run with --plugin. The libraries are
// tests/must_fail/plugins.
#include "tests/support/command_line.h"

namespace plumb {
namespace plugin_golden_test {

constexpr const char* kCase = "rms_norm/v4_flash_hidden/eager";

class PluginGolden : public CommandLine {
 protected:
  static std::string plugin(const std::string& library) {
    return std::string(PLUMB_TEST_PLUGINS) + "/launches_" + library + ".so";
  }
  Finished call(Words words, const std::string& library, const Words& more = {}) const {
    words.insert(words.end(), {"--platform", "sim-sm90", "--plugin", plugin(library), "--goldens",
                               path("goldens"), "--case", kCase});
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Finished regenerate(const std::string& library) const {
    return call({"golden", "regen", "--reason", "a test"}, library);
  }
  Finished run_with(const std::string& library) const {
    return call({"run", "--json", path("report.json")}, library);
  }
  static void expect_in(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "want " << part << "\n" << text;
  }
};

TEST_F(PluginGolden, OfTheSameKernelsAreTheSame) {
  const Finished written = regenerate("right");
  EXPECT_EQ(written.code, 0) << written.out << written.err;
  expect_in(written.out, "new   rms_norm/v4_flash_hidden/eager\nsim-sm90: 1 cases, 1 of them");
  const Finished shown = run({"golden", "show", path("goldens/sim-sm90/rms_norm.h5")});
  expect_in(shown.out, "plug-in launches");
  const Finished checked = call({"golden", "check"}, "right");
  EXPECT_EQ(checked.code, 0) << checked.out;
  expect_in(checked.out, "sim-sm90: 1 cases: 1 the same bits");
  EXPECT_EQ(run_with("right").code, 0);
  expect_in(contents(path("report.json")), "\"agreement\": \"same\"");
}

// The reference permits both results.
TEST_F(PluginGolden, OtherBitsOfTheSameVersionFail) {
  ASSERT_EQ(regenerate("right").code, 0);
  const Finished finished = run_with("other_bits");
  EXPECT_EQ(finished.code, 1) << finished.out;
  expect_in(finished.out, "golden: out: ");
  expect_in(finished.out, "golden: bits differ on the toolchain that recorded the golden");
  const Finished without = run({"run", "--json", "", "--platform", "sim-sm90", "--plugin",
                                plugin("other_bits"), "--case", kCase});
  EXPECT_EQ(without.code, 0) << without.out << without.err;
}

// plumb's own results are those of another implementation: their bits may differ.
TEST_F(PluginGolden, OtherBitsOfAnotherImplementationAreDrift) {
  ASSERT_EQ(run({"golden", "regen", "--reason", "a test", "--platform", "sim-sm90", "--goldens",
                 path("goldens"), "--case", kCase})
                .code,
            0);
  const Finished checked = call({"golden", "check"}, "other_bits");
  EXPECT_EQ(checked.code, 0) << checked.out;
  expect_in(checked.out, "implementation plug-in launches (recorded: plumb ");
}

TEST_F(PluginGolden, ACaseWithoutAResultIsNotStored) {
  const Finished finished = regenerate("crash_in_kernel");
  EXPECT_EQ(finished.code, 1) << finished.out << finished.err;
  expect_in(finished.out,
            "rejected: host function 'rms_norm_kernel': access through a null pointer");
  expect_in(finished.out, "nothing is written");
  const Finished ended = regenerate("crash_in_launcher");
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  expect_in(ended.out, "signal 11");
  EXPECT_FALSE(std::filesystem::exists(path("goldens/sim-sm90/rms_norm.h5")));
  ASSERT_EQ(regenerate("right").code, 0);
  const Finished checked = call({"golden", "check"}, "crash_in_kernel");
  EXPECT_EQ(checked.code, 1) << checked.out << checked.err;
  expect_in(checked.out, "golden: ");
  const Finished wrong = regenerate("ignores_weight");
  EXPECT_EQ(wrong.code, 1) << wrong.out << wrong.err;
  expect_in(wrong.out, "the reference rejects 1 of 1 changes; nothing is written");
}

TEST_F(PluginGolden, WhatThePlugInDoesNotSupportIsCountedAndNoDrift) {
  ASSERT_EQ(regenerate("right").code, 0);
  const Finished checked =
      run({"golden", "check", "--platform", "sim-sm90", "--plugin", plugin("right"), "--goldens",
           path("goldens"), "--case", "rms_norm/v4_pro_hidden_twice/eager"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_EQ(checked.out.find("drift  "), std::string::npos) << checked.out;
  expect_in(checked.out, "0 failures; 1 compared nothing: not supported, or no promise of");
}

TEST_F(PluginGolden, NeedAStoreOfTheirOwn) {
  const Words words{"golden", "check", "--platform", "sim-sm90", "--plugin", plugin("right")};
  expect_refused(words, "--plugin needs --goldens FOLDER");
  const Finished without = call({"run", "--json", ""}, "right", {"--goldens", path("absent")});
  EXPECT_EQ(without.code, 2) << without.out << without.err;
}

TEST_F(PluginGolden, AMissingOneIsNamedWithTheCommandThatMakesIt) {
  ASSERT_EQ(regenerate("right").code, 0);
  const Finished finished =
      run({"run", "--json", "", "--platform", "sim-sm90", "--plugin", plugin("right"), "--goldens",
           path("goldens"), "--case", "rms_norm/one_token/eager"});
  EXPECT_EQ(finished.code, 1) << finished.out;
  expect_in(finished.out, "--case rms_norm/one_token/eager --plugin " + plugin("right") +
                              " --goldens " + path("goldens"));
}

}  // namespace plugin_golden_test
}  // namespace plumb
