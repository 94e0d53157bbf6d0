// SPDX-License-Identifier: Apache-2.0
//
// plumb bench --plugin: a right kernel gets a time, a wrong one a line that says that it is wrong.
#include "tests/support/command_line.h"

namespace plumb {
namespace bench_plugin_test {

std::string library(const std::string& name) {
  return std::string(PLUMB_TEST_PLUGINS) + "/" + name + ".so";
}

class BenchPlugin : public CommandLine {
 protected:
  Finished bench(const Words& plugins) const {
    Words words{"bench", "--case", "rms_norm/hidden_769/eager", "--json", path("bench.json")};
    for (const std::string& name : plugins) {
      words.insert(words.end(), {"--plugin", library(name)});
    }
    return run(words);
  }
  static bool left_out(const Finished& finished) {
    return finished.err.find("built without bench") != std::string::npos;
  }
  static void expect(const std::string& text, const std::string& says) {
    EXPECT_NE(text.find(says), std::string::npos) << "want " << says << "\n" << text;
  }
};

TEST_F(BenchPlugin, ARightKernelHasAFigureBesidePlumbsOwn) {
  const Finished finished = bench({"launches_right"});
  if (left_out(finished)) GTEST_SKIP() << finished.err;
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  expect(finished.out, "compared with plumb's own kernels on sim-sm90");
  expect(finished.out, "no measurement of hardware");
  expect(finished.out, " us  ± ");
  expect(contents(path("bench.json")), "\"seconds\": ");
}

TEST_F(BenchPlugin, AWrongKernelHasNone) {
  const Finished finished = bench({"launches_ignores_weight"});
  if (left_out(finished)) GTEST_SKIP() << finished.err;
  EXPECT_EQ(finished.code, 1) << finished.out << finished.err;
  expect(finished.out, "no figure: launches is wrong: ");
  EXPECT_EQ(finished.out.find(" us  ± "), std::string::npos) << finished.out;
}

TEST_F(BenchPlugin, TheBaseMayBeAPlugInToo) {
  const Finished finished = bench({"launches_ignores_weight", "launches_right"});
  if (left_out(finished)) GTEST_SKIP() << finished.err;
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  expect(finished.out, " us  ± ");
  expect(finished.out, "base: no figure: the first plug-in is wrong: ");
}

TEST_F(BenchPlugin, WhatCannotBeTimedIsOneLine) {
  const Finished finished = bench({"absent"});
  if (left_out(finished)) GTEST_SKIP() << finished.err;
  EXPECT_EQ(finished.code, 2) << finished.out;
  expect(finished.err, "No such file or directory");
}

}  // namespace bench_plugin_test
}  // namespace plumb
