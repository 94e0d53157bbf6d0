// SPDX-License-Identifier: Apache-2.0
//
// plumb faults through the built binary.
#include <fmt/format.h>

#include "tests/support/command_line.h"

namespace plumb {
namespace faults_command_test {

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t times = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++times;
  return times;
}

TEST_F(CommandLine, FaultsAreFoundAndTheStepsWithoutThemAreClean) {
  const Finished finished =
      run({"faults", "--platform", "sim-gfx942", "--fault", "replay_does_nothing", "--fault",
           "top_k_pads_with_*", "--json", path("faults.json")});
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(count(finished.out, "  found\n"), 2u) << finished.out;
  EXPECT_NE(finished.out.find("; blamed first: step 0, replay\n"), std::string::npos)
      << finished.out;
  EXPECT_NE(finished.out.find("2 of 2 faults found (100 %)"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find(" 0 alarms\npassed\n"), std::string::npos) << finished.out;
  EXPECT_EQ(finished.out.find('\033'), std::string::npos) << "colour in a file";
  const std::string json = contents(path("faults.json"));
  EXPECT_EQ(count(json, "\"found\": true"), 2u);
  EXPECT_NE(json.find("\"exit_code\": 0"), std::string::npos);
}

// Each line is a name that --fault and --set fault= take, and what the fault stands for.
TEST_F(CommandLine, FaultsAreListed) {
  const Finished listed = run({"list", "--faults"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_GT(count(listed.out, "\n"), 100u);
  EXPECT_NE(listed.out.find("\nwarm_up_state_captured  "), std::string::npos);
  EXPECT_NE(listed.out.find(" vLLM #42444"), std::string::npos);
  EXPECT_NE(listed.out.find("\nrouter_logits_in_bf16  "), std::string::npos)
      << "a fault within the numerics";
}

// The fault makes a result shorter than in the eager step. That is a finding about the call, and
// does not end the comparison of the step.
TEST_F(CommandLine, AResultOfAnotherShapeIsAFindingAboutItsCall) {
  const Finished finished =
      run({"run", "--case", "decode_step/v4/full", "--platform", "sim-sm90", "--set",
           "fault=top_k_cut_at_decode_tokens", "--json", path("report.json")});
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_EQ(finished.out.find("error: "), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("in this run, but "), std::string::npos) << finished.out;
}

TEST_F(CommandLine, CleanStepsRaiseNoAlarmWithAnyNumberOfJobs) {
  const Words words{"faults", "--clean", "30", "--platform", "sim-sm90", "--seed", "7", "--jobs"};
  for (const char* jobs : {"1", "2"}) {
    Words with_jobs = words;
    with_jobs.emplace_back(jobs);
    const Finished finished = run(with_jobs);
    EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
    EXPECT_EQ(finished.out.find("\nwithout a fault: 30 steps in 2 schedules, "), 0u)
        << finished.out;
  }
}

TEST_F(CommandLine, EachFaultIsInOneShard) {
  std::string all;
  for (const char* shard : {"1/2", "2/2"}) {
    const Finished finished =
        run({"faults", "--platform", "sim-sm90", "--fault", "top_k_pads_with_*", "--fault",
             "replay_does_nothing", "--shard", shard, "--json", path("faults.json")});
    EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
    EXPECT_NE(finished.out.find("1 of 1 faults found (100 %)"), std::string::npos) << finished.out;
    all += contents(path("faults.json"));
  }
  for (const char* fault : {"top_k_pads_with_zero", "replay_does_nothing"}) {
    EXPECT_NE(all.find(fmt::format("\"{}\"", fault)), std::string::npos) << fault;
  }
}

TEST_F(CommandLine, FaultsThatAreNotThereAreRefused) {
  expect_refused({"faults", "--fault", "replay_does_nothin"},
                 "no fault matches \"replay_does_nothin\" (did you mean replay_does_nothing?)");
  expect_refused({"faults", "--fault", "planner_*", "--fault", "absent*"},
                 "no fault matches \"absent*\"");
  expect_refused({"faults", "--platform", "sim-sm9"}, "(did you mean sim-sm90?)");
  expect_refused({"faults", "--platform", "hip-gfx942"}, "hip-gfx942: ");
  expect_refused({"faults", "--clean", "0"}, "--clean");
  expect_refused({"faults", "--clean", "5", "--fault", "*"}, "leave out --fault");
  expect_refused({"faults", "--clean", "5", "--shard", "1/2"}, "leave out --shard");
  expect_refused({"faults", "--shard", "3/2"}, "--shard 3/2: not I/N");
  expect_refused({"faults", "--fault", "replay_does_nothing", "--shard", "2/2"},
                 "--shard 2/2 contains none of the faults");
  expect_refused({"faults", "--geometry", "production"}, "--geometry production is for --clean");
  expect_refused({"faults", "--geometry", "production", "--clean", "6"},
                 "for real devices, not for sim-sm90");
  expect_refused({"faults", "--geometry", "medium", "--clean", "6"}, "--geometry");
  expect_refused({"faults", "--seed", "x"}, "--seed is a whole number");
  expect_refused({"faults", "--fault", "planner_*", "--json", path("absent/f.json")},
                 "there is no folder");
}

}  // namespace faults_command_test
}  // namespace plumb
