// SPDX-License-Identifier: Apache-2.0
//
// Runs the built plumb binary, for tests of its command line.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "process/child.h"

namespace plumb {

using Words = std::vector<std::string>;

struct Finished {
  int code = -1;
  std::string out, err;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("plumb_command_line_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  // Runs plumb. stdout goes to a file, or to `out` if it names one ("" closes it).
  Finished run(Words words, const std::string& out = "-") const {
    words.insert(words.begin(), PLUMB_BINARY);
    process::Command command{std::move(words)};
    command.in = process::Redirection::inherited();
    command.out = out.empty() ? process::Redirection::closed()
                              : process::Redirection::file(out == "-" ? path("out") : out);
    command.err = process::Redirection::file(path("err"));
    process::Child plumb(command);
    EXPECT_TRUE(plumb.wait(process::Deadline::in(kLongestRun))) << "plumb hangs";
    plumb.end();
    const process::Ending& ending = plumb.ending();
    return {ending.signal == 0 ? ending.code : 128 + ending.signal,
            out == "-" ? contents(path("out")) : "", contents(path("err"))};
  }

  // Arguments for a run of one small case, with its report in this test's folder.
  Words small_run(const Words& more) const {
    Words words{"run",      "--case", "rms_norm/hidden_1/eager", "--platform",
                "sim-sm90", "--json", path("report.json")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Expects this exit code, one line on stderr that contains `says`, and nothing on stdout.
  void expect_refused(const Words& words, const std::string& says, int code = 2) const {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, code) << says;
    EXPECT_EQ(finished.out, "") << says;
    EXPECT_EQ(finished.err.find("plumb: "), 0u) << finished.err;
    EXPECT_NE(finished.err.find(says), std::string::npos) << "want " << says << "\n"
                                                          << finished.err;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    EXPECT_FALSE(std::filesystem::exists(path("report.json"))) << says;
  }

  static constexpr double kLongestRun = 1800;  // seconds
  std::filesystem::path folder_;
};

}  // namespace plumb
