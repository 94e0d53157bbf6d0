// SPDX-License-Identifier: Apache-2.0
//
// plumb invariance --plugin: measures the plug-in's kernel, not plumb's own.
#include "tests/support/command_line.h"

namespace plumb {
namespace plugin_invariance_test {

std::string library(const std::string& name) {
  std::string path = PLUMB_TEST_PLUGINS;
  path += "/";
  path += name;
  return path += ".so";
}

class PluginInvariance : public CommandLine {
 protected:
  Words words_of(const std::string& name, const std::string& pattern) const {
    Words words;
    for (const char* word : {"invariance", "--platform", "sim-sm90", "--sizes", "1,2,8"}) {
      words.emplace_back(word);
    }
    words.emplace_back("--case");
    words.push_back(pattern);
    words.emplace_back("--plugin");
    words.push_back(library(name));
    return words;
  }
};

TEST_F(PluginInvariance, ItsRowsDoNotDependOnTheirBatch) {
  const Finished finished = run(words_of("launches_right", "rms_norm/hidden_769/*"));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("invariant in tokens"), std::string::npos) << finished.out;
}

TEST_F(PluginInvariance, ACrashIsAnAnswerAboutItsRow) {
  const Finished finished = run(words_of("launches_crash_in_launcher", "rms_norm/hidden_769/*"));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("not measured: crash: its process ended with signal 11"),
            std::string::npos)
      << finished.out;
}

TEST_F(PluginInvariance, WithoutAnOpOfThePlugInThereIsNothingToMeasure) {
  expect_refused(words_of("launches_right", "hc_head"), "has no op of a selected case");
  expect_refused(words_of("absent", "rms_norm"), "No such file or directory");
}

}  // namespace plugin_invariance_test
}  // namespace plumb
