// SPDX-License-Identifier: Apache-2.0
//
// Tests plumb judge --follow, which judges steps while they are being recorded.
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/command_line.h"
#include "tests/trace/example_trace.h"

namespace plumb::tests {
namespace follow_test {

class Follow : public CommandLine {
 protected:
  std::string file(const std::string& name) const {
    std::filesystem::create_directories(folder_ / "trace" / "rank-0");
    return path("trace/rank-0/" + name);
  }
  void write_step(std::int64_t number, double eps = 1e-6) const {
    ExampleStep step(number);
    step.norm();
    step.norm(eps, 1);
    step.write(file("step-00000" + std::to_string(number) + ".h5"));
  }

  process::Child start(Words words) const {
    words.insert(words.begin(), {PLUMB_BINARY, "judge", path("trace")});
    process::Command command{std::move(words)};
    command.in = process::Redirection::inherited();
    command.out = process::Redirection::file(path("out"));
    command.err = process::Redirection::file(path("err"));
    return process::Child(command);
  }
  bool says(const std::string& text) const {
    for (int i = 0; i < 600; ++i) {
      if (contents(path("out")).find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  int code_of(process::Child& plumb) const {
    EXPECT_TRUE(plumb.wait(process::Deadline::in(60))) << "it does not end";
    plumb.end();
    return plumb.ending().signal == 0 ? plumb.ending().code : 128 + plumb.ending().signal;
  }
};

TEST_F(Follow, AWrongCallIsALineBeforeTheRecordingEnds) {
  process::Child plumb = start({"--follow", "--json", path("j.json")});
  write_step(0);
  write_step(1, 0.1);
  ASSERT_TRUE(says("WRONG  step 1, call 1 of 2, layer 1: rms_norm (Norm.forward), eager\n      "));
  EXPECT_FALSE(plumb.has_ended());
  EXPECT_EQ(contents(path("out")).find("calls:"), std::string::npos);
  write_step(2);
  std::ofstream(file("finished")).flush();
  EXPECT_EQ(code_of(plumb), 1);
  const std::string out = contents(path("out"));
  EXPECT_NE(out.find("FIRST WRONG CALL  step 1, call 1 of 2"), std::string::npos) << out;
  EXPECT_NE(out.find("6 calls: 5 passed, 1 failed, 0 not judged\n"), std::string::npos) << out;
  EXPECT_EQ(nlohmann::json::parse(contents(path("j.json")))["total"]["calls"], 6);
}

TEST_F(Follow, CtrlCIsTheEndAndNoInterruption) {
  process::Child plumb = start({"--follow", "--json", path("j.json")});
  write_step(0, 0.1);
  ASSERT_TRUE(says("WRONG"));
  ::kill(plumb.id(), SIGINT);
  EXPECT_EQ(code_of(plumb), 1);
  EXPECT_EQ(contents(path("err")), "");
  EXPECT_FALSE(nlohmann::json::parse(contents(path("j.json"))).contains("interrupted"));
}

// A step file that does not have its final name yet is incomplete, so it is not judged.
TEST_F(Follow, ItEndsAfterTheSecondsWithoutANewStep) {
  write_step(0);
  std::ofstream(file("step-000001.h5.unfinished")) << "half";
  const Finished finished = run({"judge", path("trace"), "--follow", "0.5"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("2 calls: 2 passed"), std::string::npos) << finished.out;
}

TEST_F(Follow, EveryRankFinishes) {
  write_step(0);
  std::ofstream(file("finished")).flush();
  std::filesystem::create_directories(folder_ / "trace" / "rank-1");
  process::Child plumb = start({"--follow"});
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_FALSE(plumb.has_ended()) << "rank 1 still records";
  std::ofstream(path("trace/rank-1/finished")).flush();
  EXPECT_EQ(code_of(plumb), 0);
}

TEST_F(Follow, BrokenChainsAreFollowedToo) {
  ExampleStep step;
  ExampleStep::Json& call = step.norm();
  for (const char* part : {"before", "after"}) {
    for (auto& [name, tensor] : call[part].items()) {
      tensor["storage"] = name == "weight" ? 2 : 1;
      tensor["offset"] = 0;
    }
  }
  // The second call reads x from memory that the first one wrote.
  step.json["calls"].push_back(step.json["calls"][0]);
  step.json["complete"] = true;
  step.write(file("step-000000.h5"));
  std::ofstream(file("finished")).flush();
  EXPECT_EQ(run({"judge", path("trace"), "--follow"}).code, 1);
}

TEST_F(Follow, WhatCannotBeFollowedIsOneLine) {
  write_step(0);
  expect_refused({"judge", file("step-000000.h5"), "--follow"}, "needs the folder of a recording");
  expect_refused({"judge", path("trace"), "--follow", "--call", "0/0/0"}, "leave out --call");
  expect_refused({"judge", path("trace"), "--follow", "-3"}, "--follow");
  expect_refused({"judge", path("nothing"), "--follow", "0.3"}, "nothing: no step-*.h5 has come");
}

}  // namespace follow_test
}  // namespace plumb::tests
