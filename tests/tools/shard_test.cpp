// SPDX-License-Identifier: Apache-2.0
//
// plumb run divides its cases by the variables with which GoogleTest divides tests.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/command_line.h"

namespace plumb {
namespace shard_test {

class Shards : public CommandLine {
 protected:
  void TearDown() override {
    for (const char* name :
         {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE"}) {
      unsetenv(name);
    }
    CommandLine::TearDown();
  }

  Finished run_shard(const char* index, const char* total) const {
    setenv("GTEST_SHARD_INDEX", index, 1);
    setenv("GTEST_TOTAL_SHARDS", total, 1);
    return run({"run", "--case", "mtp_shared_head_rms_norm/*/eager", "--platform", "sim-sm90",
                "--json", path("report.json")});
  }

  std::multiset<std::string> cases_of_report() const {
    std::multiset<std::string> names;
    const auto report = nlohmann::json::parse(contents(path("report.json")));
    for (const auto& one : report.value("cases", nlohmann::json::array())) {
      names.insert(one.at("case").get<std::string>());
    }
    return names;
  }
};

TEST_F(Shards, HaveEachCaseOnce) {
  ASSERT_EQ(run_shard("0", "1").code, 0);
  const std::multiset<std::string> all = cases_of_report();
  ASSERT_GT(all.size(), 3u);
  std::multiset<std::string> together;
  for (const char* index : {"0", "1", "2"}) {
    ASSERT_EQ(run_shard(index, "3").code, 0);
    const std::multiset<std::string> share = cases_of_report();
    EXPECT_LT(share.size(), all.size());
    together.insert(share.begin(), share.end());
  }
  EXPECT_EQ(together, all);
}

TEST_F(Shards, MayHaveNoCase) {
  const Finished finished = run_shard("998", "999");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("no case in shard 999 of 999"), std::string::npos) << finished.out;
  EXPECT_NE(contents(path("report.json")).find("\"exit_code\": 0"), std::string::npos);
}

TEST_F(Shards, SayThatTheVariablesWereRead) {
  setenv("GTEST_SHARD_STATUS_FILE", path("status").c_str(), 1);
  ASSERT_EQ(run_shard("0", "2").code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("status")));
}

TEST_F(Shards, AreRefusedWhereTheVariablesMakeNoSense) {
  const auto refused = [&](const Finished& finished, const std::string& why) {
    EXPECT_EQ(finished.code, 2);
    EXPECT_NE(finished.err.find(why), std::string::npos) << finished.err;
  };
  refused(run_shard("3", "3"), "GTEST_SHARD_INDEX=3 is not below GTEST_TOTAL_SHARDS=3");
  refused(run_shard("x", "3"), "GTEST_SHARD_INDEX=x: not a number");
  refused(run_shard("0", "-1"), "GTEST_TOTAL_SHARDS=-1: not a number");
  unsetenv("GTEST_TOTAL_SHARDS");
  refused(run({"run", "--case", "rms_norm/hidden_1/eager"}),
          "GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX need each other");
}

}  // namespace shard_test
}  // namespace plumb
