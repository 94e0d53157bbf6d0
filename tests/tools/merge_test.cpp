// SPDX-License-Identifier: Apache-2.0
//
// A run in parts gives the report of a whole run: merged shards, and an interrupted run that is
// resumed.
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command_line.h"

namespace plumb {
namespace merge_test {

using nlohmann::ordered_json;

class RunsInParts : public CommandLine {
 protected:
  Words command(const std::string& report, const Words& more = {}) const {
    Words words{"run",   "--op",       "rms_norm", "--op",   "hc_head",   "--tier",
                "smoke", "--platform", "sim-sm90", "--json", path(report)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // The report without times and without its origin.
  ordered_json verdicts_of(const std::string& report) const {
    ordered_json json = ordered_json::parse(contents(path(report)));
    json.erase("run");
    for (ordered_json& one : json["cases"]) one.erase("seconds");
    return json;
  }

  // Shortens a report to that of a run that ended after `done` cases.
  void cut(const std::string& report, std::size_t done) const {
    ordered_json json = ordered_json::parse(contents(path(report)));
    const std::size_t all = json["cases"].size();
    json["cases"].erase(json["cases"].begin() + static_cast<std::ptrdiff_t>(done),
                        json["cases"].end());
    json["interrupted"] = {{"why", "interrupted by SIGINT"}, {"done", done}, {"cases", all}};
    json["exit_code"] = 130;
    write(report, json.dump(1));
  }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path(file)) << text;
  }

  void refused(const Words& words, const std::string& why) const {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 2) << finished.out;
    EXPECT_NE(finished.err.find(why), std::string::npos) << finished.err;
  }
};

TEST_F(RunsInParts, MergeToTheRunInOne) {
  ASSERT_EQ(run(command("whole")).code, 0);
  const std::size_t all = verdicts_of("whole")["cases"].size();
  std::size_t most = 0;
  for (const std::string shard : {"1", "2", "3"}) {
    ASSERT_EQ(run(command("shard" + shard, {"--shard", shard + "/3"})).code, 0);
    most = std::max(most, verdicts_of("shard" + shard)["cases"].size());
  }
  EXPECT_LT(most, all);
  // The order of the files does not matter.
  const Finished merged = run({"merge", path("shard3"), path("shard1"), path("shard2"), "-o",
                               path("merged"), "--junit", path("junit.xml")});
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_NE(merged.out.find(std::to_string(all) + " passed, 0 failed"), std::string::npos)
      << merged.out;
  EXPECT_EQ(verdicts_of("merged"), verdicts_of("whole"));
  EXPECT_NE(contents(path("junit.xml")).find("tests=\"" + std::to_string(all) + "\""),
            std::string::npos);

  refused({"merge", path("shard1"), path("shard3"), "-o", path("none")},
          "merge: shard 2 of 3 is missing");
  refused({"merge", path("shard1"), path("shard1"), path("shard2"), "-o", path("none")},
          "are both shard 1 of 3");
  refused({"merge", path("whole"), path("shard1"), "-o", path("none")}, "is not a shard of 3");
  refused({"merge", path("whole"), path("whole"), "-o", path("none")}, "like an earlier file");
  cut("shard2", 1);
  refused({"merge", path("shard1"), path("shard2"), path("shard3"), "-o", path("none")}, "1 of ");
  EXPECT_FALSE(std::filesystem::exists(path("none")));
}

TEST_F(RunsInParts, KeepFailuresAndTheirExitCode) {
  const Words broken[] = {
      {"--case", "decode_step/v4/full", "--seed", "3", "--set", "fault=hc_eps_lost"},
      {"--case", "rms_norm/*/eager", "--tier", "smoke", "--plugin",
       std::string(PLUMB_TEST_PLUGINS) + "/launches_ignores_weight.so"}};
  for (const Words& words : broken) {
    Words failing{"run", "--platform", "sim-sm90", "--json", path("failed")};
    failing.insert(failing.end(), words.begin(), words.end());
    ASSERT_EQ(run(failing).code, 1);
    const Finished merged = run({"merge", path("failed"), "-o", path("merged")});
    EXPECT_EQ(merged.code, 1) << merged.err;
    EXPECT_NE(merged.out.find("FAIL  "), std::string::npos) << merged.out;
    EXPECT_EQ(verdicts_of("merged"), verdicts_of("failed"));
  }
}

TEST_F(RunsInParts, GoOnWhereTheyWereInterrupted) {
  ASSERT_EQ(run(command("whole")).code, 0);
  const std::string report = contents(path("whole"));
  const std::size_t all = verdicts_of("whole")["cases"].size();
  for (const std::size_t done : {std::size_t{0}, std::size_t{1}, all / 2, all - 1}) {
    write("part", report);
    cut("part", done);
    const Finished rest = run(command("part", {"--resume"}));
    EXPECT_EQ(rest.code, 0) << rest.err;
    EXPECT_NE(rest.out.find(std::to_string(all) + " passed"), std::string::npos) << rest.out;
    EXPECT_EQ(verdicts_of("part"), verdicts_of("whole")) << done;
  }
  refused(command("part", {"--resume"}), " is complete");
  write("part", report);
  cut("part", 3);
  refused(command("part", {"--resume", "--seed", "7"}), "has seed 0, and this run 7");
  refused(command("part", {"--resume", "--case", "hc_head/*/eager"}),
          "which this command does not select");
  refused(command("absent", {"--resume"}), "absent");
  ordered_json other = ordered_json::parse(contents(path("part")));
  other["run"]["program"] = "0";
  write("part", other.dump());
  refused(command("part", {"--resume"}), "has program 0, and this run ");
}

TEST_F(RunsInParts, AreNotMadeOfNonsense) {
  ASSERT_EQ(run(command("whole")).code, 0);
  const ordered_json whole = ordered_json::parse(contents(path("whole")));
  const auto refused_as = [&](const std::string& text, const std::string& why) {
    write("bad", text);
    refused({"merge", path("bad"), "-o", path("none")}, why);
  };
  refused_as("", "is not a report of plumb run");
  refused_as("[]", "is not a report of plumb run");
  ordered_json bad = whole;
  bad["cases"][1]["outcome"] = "perfect";
  refused_as(bad.dump(), "case 2: \"perfect\" is not known here");
  bad = whole;
  bad["cases"][2].erase("tensors");
  bad["cases"][2]["seconds"] = "long";
  refused_as(bad.dump(), "case 3: ");
  bad = whole;
  bad["schema"] = 7;
  refused_as(bad.dump(), "reads reports of schema 1");
  bad = whole;
  bad["cases"][0]["case"] = "rms_norm";
  refused_as(bad.dump(), "\"rms_norm\" is not op/row/scenario");
  for (const char* shard : {"0/3", "4/3", "1", "a/b", "1/3x", "/"}) {
    refused(command("none", {"--shard", shard}), "not I/N with 1 <= I <= N");
  }
  EXPECT_FALSE(std::filesystem::exists(path("none")));
}

}  // namespace merge_test
}  // namespace plumb
