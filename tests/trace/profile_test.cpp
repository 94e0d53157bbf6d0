// SPDX-License-Identifier: Apache-2.0
//
// Tests profiles (what an engine's kernels promise, for recorded calls that do not say so): which
// one applies to a call, its effect on the verdict, and which files are refused.
#include "trace/profiles/profile.h"

#include <set>

#include "tests/support/command_line.h"
#include "tests/trace/example_trace.h"

namespace plumb::tests {
namespace profile_test {

using trace::parse_profiles;
using trace::Profile;

using Provenance = std::map<std::string, std::string>;

Profile profile_of(const std::string& bounds) {
  const std::string op = "\n[profile.ops.rms_norm]\nrounding = \"twice\"\n";
  return parse_profiles("engine = \"mine\"\n[[profile]]\n" + bounds + op, "p.toml").at(0);
}

std::string why_refused(const std::string& text) {
  try {
    parse_profiles(text, "p.toml");
  } catch (const trace::BadProfile& error) {
    return error.what();
  }
  return "";
}

TEST(Profiles, PlumbsOwnSayWhatTheirOpsHave) {
  std::set<std::string> engines;
  for (const Profile& one : trace::known_profiles()) {
    engines.insert(one.engine);
    for (const auto& [op, promise] : one.ops) EXPECT_NE(promise.text(), "") << one.name() << op;
  }
  EXPECT_EQ(engines,
            (std::set<std::string>{"aiter", "flag_gems", "flashinfer", "flashmla", "liger",
                                   "sglang", "transformers", "unsloth", "vllm", "xformers"}));
}

TEST(Profiles, EngineVersionAndPlatformChoose) {
  const Profile any = profile_of("");
  EXPECT_TRUE(any.is_of({{"engine", "mine"}}));
  EXPECT_FALSE(any.is_of({{"engine", "other"}}));
  EXPECT_FALSE(any.is_of({}));
  const Profile some = profile_of("from = \"0.9\"\nbefore = \"0.20\"\nplatform = \"cuda\"");
  const auto fits = [&](const std::string& version, const std::string& platform) {
    return some.is_of({{"engine", "mine"}, {"version", version}, {"platform", platform}});
  };
  EXPECT_TRUE(fits("0.9", "cuda"));
  EXPECT_TRUE(fits("0.10.1.post2", "cuda-sm90"));
  EXPECT_TRUE(fits("0.19.9rc1", "cuda-sm90"));
  EXPECT_FALSE(fits("0.20", "cuda-sm90"));
  EXPECT_FALSE(fits("0.20.1", "cuda-sm90"));
  EXPECT_FALSE(fits("0.8.9", "cuda-sm90"));
  EXPECT_FALSE(fits("0.10", "cpu"));
  EXPECT_FALSE(fits("0.10", "cudax"));
  EXPECT_FALSE(fits("", "cuda-sm90"));
}

TEST(Profiles, WhatIsNoneIsOneLine) {
  const std::string op = "[[profile]]\n[profile.ops.rms_norm]\n";
  const std::pair<std::string, std::string> wrong[] = {
      {"[[profile", "p.toml:1: "},
      {"[[profile]]\n[[[from = \"1\"", "p.toml: is not TOML"},
      {"engine = 1\n[[profile]]", "p.toml:1: engine is a text"},
      {"engine = \"a\"", "p.toml: has no [[profile]]"},
      {"[profile]\n", "p.toml:1: write [[profile]], with two brackets"},
      {"engin = \"a\"", "p.toml:1: a file of profiles has no \"engin\" (did you mean engine?)"},
      {"[[profile]]\nfrom = \"1\"", "p.toml:1: a profile needs [profile.ops.NAME]"},
      {"[[profile]]\nform = \"1\"", "p.toml:2: a profile has no \"form\" (did you mean from?)"},
      {"[[profile]]\nfrom = \">=1\"", "p.toml:2: from is numbers and dots, not \">=1\""},
      {"profile = [1]", "p.toml:1: profile is a table"},
      {"[[profile]]\nops = 3", "p.toml:2: ops is a table"},
      {"[[profile]]\n[profile.ops.rms_nrm]",
       "p.toml:2: there is no op rms_nrm (did you mean rms_norm?)"},
      {op + "rounding = \"thrice\"", "p.toml:3: rms_norm"},
      {op + "roundin = \"once\"", "p.toml:3: rms_norm has no \"roundin\" (did you mean rounding?)"},
      {op + "rounding = 1", "p.toml:3: rounding is a text"},
      {op + "numerics = { chians = 1 }", "p.toml:3: there is no chians among the numerics"},
      {op + "numerics = { chains = 0 }", "p.toml:3: numerics: chains is 0"},
      {op + "numerics = { product = \"bf17\" }", "p.toml:3: numerics: product is \"bf17\""},
      {op + "numerics = { chains = [] }", "p.toml:3: chains is a number or a word"}};
  for (const auto& [text, line] : wrong) {
    const std::string why = why_refused(text);
    EXPECT_EQ(why.find(line), 0u) << text << "\n" << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
}

class ProfiledTrace : public CommandLine {
 protected:
  // Writes a call that rounds once, recorded from an engine of this name.
  void write_trace(const std::string& engine,
                   const nlohmann::ordered_json& scalars = nlohmann::ordered_json::object()) const {
    ExampleStep step;
    step.json["provenance"] = {{"engine", engine}, {"version", "1.4"}};
    step.norm()["scalars"].update(scalars);
    std::filesystem::create_directories(folder_ / "trace" / "rank-0");
    step.write(path("trace/rank-0/step-000000.h5"));
  }
  Finished judge(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"judge", path("trace")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

TEST_F(ProfiledTrace, ACallThatSaysNothingIsJudgedByItsEnginesProfile) {
  write_trace("sglang");
  const Finished right = judge({"--json", path("j.json")});
  EXPECT_EQ(right.code, 0) << right.out;
  EXPECT_NE(right.out.find("by profiles: rms_norm sglang.toml:"), std::string::npos) << right.out;
  const auto json = nlohmann::json::parse(contents(path("j.json")));
  EXPECT_EQ(json["profiles"]["rms_norm"].get<std::string>().find("sglang.toml:"), 0u);
  write_trace("unsloth");
  const Finished wrong = judge();
  EXPECT_EQ(wrong.code, 1) << wrong.out;
  EXPECT_NE(wrong.out.find("promises rounding = twice"), std::string::npos) << wrong.out;
  EXPECT_NE(wrong.out.find("right as the kernel of aiter (aiter.toml:"), std::string::npos)
      << wrong.out;
  write_trace("unsloth", {{"rounding", "once"}});
  EXPECT_EQ(judge().code, 0);
  write_trace("nobody");
  EXPECT_EQ(judge().out.find("by profiles"), std::string::npos);
}

// If a result is wrong under every profile, the report names no profile under which it is right.
TEST_F(ProfiledTrace, AWrongCallIsRightAsNobodys) {
  ExampleStep step;
  step.json["provenance"] = {{"engine", "sglang"}};
  step.norm(0.1);
  std::filesystem::create_directories(folder_ / "trace" / "rank-0");
  step.write(path("trace/rank-0/step-000000.h5"));
  const Finished wrong = judge();
  EXPECT_EQ(wrong.code, 1);
  EXPECT_EQ(wrong.out.find("right as"), std::string::npos) << wrong.out;
}

TEST_F(ProfiledTrace, FilesOfTheUsersReplaceSingleValues) {
  write_trace("sglang");
  const std::string head = "engine = \"sglang\"\n[[profile]]\n";
  const std::string op = "[profile.ops.rms_norm]\nrounding = \"twice\"\n";
  const std::string twice = write("twice.toml", head + op);
  const Finished wrong = judge({"--profile", twice});
  EXPECT_EQ(wrong.code, 1) << wrong.out;
  EXPECT_NE(wrong.out.find(twice + ":3 promises rounding = twice, chains = 256"), std::string::npos)
      << wrong.out;
  const std::string later = write("later.toml", head + "from = \"1.5\"\n" + op);
  EXPECT_EQ(judge({"--profile", later}).code, 0);
  std::filesystem::create_directories(folder_ / "own");
  write("own/twice.toml", "[[profile]]\n" + op);
  EXPECT_EQ(judge({"--profile", path("own")}).code, 1);
}

TEST_F(ProfiledTrace, WhatIsNoFileOfProfilesIsOneLine) {
  write_trace("sglang");
  const auto refused = [&](const std::string& profile, const std::string& line) {
    expect_refused({"judge", path("trace"), "--profile", profile}, line);
  };
  refused(path("nothing.toml"), "nothing.toml\" cannot be read");
  refused("", "\"\" cannot be read");
  refused("/dev/zero", "/dev/zero: more than 1 MiB");
  std::filesystem::create_directories(folder_ / "empty");
  refused(path("empty"), "empty: no file *.toml in it");
  refused(write("bad.toml", "[[profile]]\nform = \"1\""), "bad.toml:2: a profile has no \"form\"");
}

}  // namespace profile_test
}  // namespace plumb::tests
