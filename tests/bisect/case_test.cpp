// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect case on the command line: wrong kernels of plug-ins, planted faults in decode steps,
// and questions that make no sense.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"
#include "tests/support/long_tests.h"

namespace plumb {
namespace case_test {

using nlohmann::json;

std::string plugin(const std::string& name) {
  return std::string(PLUMB_TEST_PLUGINS) + "/launches_" + name + ".so";
}

class BisectCase : public CommandLine {
 protected:
  Finished bisect(Words words, const std::string& state = "") const {
    words.insert(words.begin(), {"bisect", "case"});
    words.insert(words.end(), {"--state", state, "--json", path("case.json")});
    return run(words);
  }
  json report() const { return json::parse(contents(path("case.json"))); }

  void expect_refused(const Words& words, int code, const std::string& why) const {
    const Finished finished = bisect(words);
    EXPECT_EQ(finished.code, code) << finished.out << finished.err;
    EXPECT_NE(finished.err.find(why), std::string::npos) << finished.err;
    EXPECT_EQ(finished.out, "");
  }
};

TEST_F(BisectCase, BringsAWrongKernelDownToOneRowAtTheTamestPoint) {
  const Words what{"rms_norm/v4_pro_hidden/full_graph", "--platform", "sim-gfx942", "--plugin",
                   plugin("ignores_weight")};
  const Finished finished = bisect(what);
  ASSERT_EQ(finished.code, 0) << finished.out << finished.err;
  const json result = report();
  EXPECT_EQ(result["smallest"]["case"], "rms_norm/v4_pro_hidden/eager");
  EXPECT_EQ(result["parameters"]["tokens"], "1");
  EXPECT_LT(std::stoi(result["parameters"]["hidden"].get<std::string>()), 16);
  EXPECT_EQ(result["parameters"]["point.live"], "1");
  EXPECT_EQ(result["failure"]["kind"], "out: wrong values");
  EXPECT_TRUE(result["complete"]);
  const std::string line = result["reproduce"];
  EXPECT_NE(finished.out.find("    " + line + "\n"), std::string::npos) << finished.out;
  // The printed reproduce line fails again.
  Words again{"run",
              "--case",
              "rms_norm/v4_pro_hidden/eager",
              "--platform",
              "sim-gfx942",
              "--plugin",
              plugin("ignores_weight"),
              "--point",
              result["smallest"]["point"],
              "--json",
              ""};
  for (const json& setting : result["smallest"]["set"]) {
    again.insert(again.end(), {"--set", setting});
  }
  EXPECT_EQ(run(again).code, 1);
}

// With a single row, a kernel that leaves out the last row looks like one that writes nothing.
TEST_F(BisectCase, KeepsARightRowIfMostRowsAreRight) {
  const Finished finished = bisect(
      {"rms_norm/kv_latent_slice/eager", "--platform", "sim-sm90", "--plugin", plugin("last_row")});
  ASSERT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_EQ(report()["parameters"]["tokens"], "2");
  EXPECT_EQ(report()["parameters"]["hidden"], "8");
  EXPECT_NE(finished.out.find("tokens 2: with 1 it fails otherwise (all rows are wrong)"),
            std::string::npos)
      << finished.out;
}

TEST_F(BisectCase, NamesAnEpsThatTheKernelIgnores) {
  const Finished finished = bisect({"rms_norm/v4_pro_hidden/eager", "--platform", "sim-sm90",
                                    "--plugin", plugin("ignores_eps"), "--set", "eps=0.5"});
  ASSERT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_NE(finished.out.find("    eps 0.5: with default it passes"), std::string::npos)
      << finished.out;
}

// The number of jobs must not change the result.
TEST_F(BisectCase, FindsTheSameWithOneJobAsWithMany) {
  std::vector<json> smallest;
  for (const char* jobs : {"1", "3"}) {
    const Finished finished = bisect({"rms_norm/v4_pro_hidden/eager", "--platform", "sim-sm90",
                                      "--plugin", plugin("ignores_weight"), "--jobs", jobs});
    ASSERT_EQ(finished.code, 0) << finished.err;
    smallest.push_back(report()["smallest"]);
  }
  EXPECT_EQ(smallest[0], smallest[1]);
}

TEST_F(BisectCase, SurvivesACrash) {
  const Finished finished = bisect({"rms_norm/one_token/eager", "--platform", "sim-sm90",
                                    "--plugin", plugin("crash_in_launcher"), "--jobs", "2"});
  ASSERT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_EQ(report()["failure"]["kind"], "crash: its process ended with signal 11");
  EXPECT_EQ(report()["parameters"]["hidden"], "8") << "one column is no row";
}

TEST_F(BisectCase, RefusesTheStateFileOfAnotherBuildOfThePlugIn) {
  namespace fs = std::filesystem;
  const Words what{"rms_norm/one_token/eager", "--platform", "sim-sm90", "--plugin",
                   path("kernels.so")};
  fs::copy_file(plugin("ignores_weight"), path("kernels.so"));
  ASSERT_EQ(bisect(what, path("state.jsonl")).code, 0);
  fs::copy_file(plugin("rounds_up"), path("kernels.so"), fs::copy_options::overwrite_existing);
  const Finished rebuilt = bisect(what, path("state.jsonl"));
  EXPECT_EQ(rebuilt.code, 2) << rebuilt.err;
  EXPECT_NE(rebuilt.err.find("answers another question: files " + path("kernels.so") + " is "),
            std::string::npos)
      << rebuilt.err;
}

TEST_F(BisectCase, GoesOnFromItsStateFileAndExplainsItself) {
  const Words what{"rms_norm/v4_pro_hidden/eager", "--platform", "sim-sm90", "--plugin",
                   plugin("ignores_weight")};
  const Finished first = bisect(what, path("state.jsonl"));
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string once = contents(path("state.jsonl"));
  const Finished second = bisect(what, path("state.jsonl"));
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.err.find("answers are remembered"), std::string::npos) << second.err;
  EXPECT_EQ(contents(path("state.jsonl")), once);
  const Finished explained = run({"bisect", "explain", path("state.jsonl")});
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_NE(explained.out.find("fails: out: wrong values"), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find("still fails with "), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find("asked because: which parameters have to keep their values"),
            std::string::npos)
      << explained.out;
  // A state file of another question is refused.
  const Finished other =
      bisect({"rms_norm/one_token/eager", "--platform", "sim-sm90"}, path("state.jsonl"));
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_NE(other.err.find("answers another question"), std::string::npos) << other.err;
}

TEST_F(BisectCase, RepeatsWhatFailsInOneProcessOfThree) {
  Words what{"rms_norm/one_token/eager", "--platform", "sim-sm90", "--plugin",
             plugin("now_and_then"),     "--repeat",   "15"};
  const Finished finished = bisect(what);
  ASSERT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_EQ(report()["parameters"]["tokens"], "1");
  EXPECT_LT(std::stoi(report()["parameters"]["hidden"].get<std::string>()), 64);
  EXPECT_NE(finished.out.find("a case counts as passing after 15 passes in a row\n"),
            std::string::npos)
      << finished.out;
  // Without --repeat the failure rate is measured.
  what.resize(what.size() - 2);
  what.insert(what.end(), {"--time", "0.001"});
  const Finished measured = bisect(what);
  ASSERT_EQ(measured.code, 0) << measured.out << measured.err;
  EXPECT_NE(measured.out.find("failed in 8 of "), std::string::npos) << measured.out;
}

TEST_F(BisectCase, SaysSoWhereTheTimeWasOver) {
  const Finished finished = bisect({"rms_norm/v4_pro_hidden/full_graph", "--platform", "sim-sm90",
                                    "--plugin", plugin("ignores_weight"), "--time", "0.001"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("the time ran out"), std::string::npos) << finished.out;
  EXPECT_FALSE(report()["complete"]);
}

TEST_F(BisectCase, RefusesWhatMakesNoSense) {
  expect_refused({"rms_norm/one_token/eager"}, 1, "the case passes");
  expect_refused({"rms_norm/hidden_1", "--platform", "sim-sm90"}, 2, "bisect case takes one");
  expect_refused({"rms_norm/one_tokn/eager"}, 2, "did you mean rms_norm/one_token/eager");
  expect_refused({"rms_norm/one_token/eager", "--set", "tokns=3"}, 2, "did you mean \"tokens\"");
  expect_refused({"rms_norm/one_token/eager", "--platform", "sim-sm91"}, 2, "unknown platform");
  expect_refused({"rms_norm/one_token/eager", "--platform", "hip-gfx942"}, 1,
                 "the case could not run: skipped");
  expect_refused({"rms_norm/one_token/eager", "--ops", "nosuch.py"}, 2, "No such file");
  expect_refused({}, 2, "--case is required");
}

// A fault of faults/decode, planted in a case of 64 requests and 50 steps.
struct Planted {
  std::string fault, which;
  Words more = {};
};

class ServingFaults : public BisectCase {
 protected:
  void expect_small(const Planted& planted) const {
    SCOPED_TRACE(planted.fault);
    Words words{planted.which, "--platform",  "sim-sm90",
                "--set",       "requests=64", "--set",
                "steps=50",    "--set",       "fault=" + planted.fault};
    words.insert(words.end(), planted.more.begin(), planted.more.end());
    const Finished finished = bisect(words);
    ASSERT_EQ(finished.code, 0) << finished.err;
    const json result = report();
    RecordProperty(planted.fault, result["reproduce"].get<std::string>());
    EXPECT_LE(result["requests"], 3) << result["reproduce"];
    EXPECT_LE(result["steps"], 4) << result["reproduce"];
    EXPECT_LT(result["seconds"], 120);
    // The kind of failure stays that of the original case.
    EXPECT_NE(finished.err.find("fails: " + result["failure"]["kind"].get<std::string>() + "\n"),
              std::string::npos)
        << finished.err;
  }
};

TEST_F(ServingFaults, OfTwoKindsAreBroughtDown) {
  expect_small({"captured_state_freed", "decode_step/v4/full"});
  expect_small({"v32_tail_not_cleared", "decode_step/v32/full"});
}

// One fault of each kind: indptr, tail of metadata, key of a plan, slot mapping, state of a graph,
// drafter, mutant kernel, staging, stale top-k, breaks, format, transfers in flight.
TEST_F(ServingFaults, OfAllKindsAreBroughtDown) {
  if (!tests::long_tests_run()) GTEST_SKIP() << tests::kTakesMinutes;
  const Words prompts{"--set", "traffic=prompts", "--set", "lengths=short_ones"};
  for (const Planted& planted :
       std::vector<Planted>{{"ragged_indptr_not_copied", "decode_step/v4/full"},
                            {"v32_tail_not_cleared", "decode_step/v32/full"},
                            {"v32_key_without_lengths", "decode_step/v32/full"},
                            {"padding_writes_slot_0", "decode_step/v4/full"},
                            {"captured_state_freed", "decode_step/v4/full"},
                            {"mtp_mask_of_stale_positions", "decode_step/v4/full"},
                            {"k_cache_minus_one_is_slot_0", "decode_step/v4/full"},
                            {"staging_overwritten", "decode_step/v4/full"},
                            {"top_k_not_reset", "decode_step/v4/full_and_piecewise", prompts},
                            {"break_returns_fresh_tensor", "decode_step/v4/breakable"},
                            {"fnuz_read_with_bias_15", "decode_step/v4/full"},
                            {"inputs_rewritten_in_flight", "decode_step/v4/full"}}) {
    expect_small(planted);
  }
}

}  // namespace case_test
}  // namespace plumb
