// SPDX-License-Identifier: Apache-2.0
//
// Programs that plumb bisect runs: every way in which they can end, and that no process is left
// behind.
#include "bisect/search/process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "bisect/commits/build.h"

namespace plumb::bisect {
namespace process_test {

Ended shell(const std::string& script, double timeout = 0) {
  return run_process({{"/bin/sh", "-c", script}, "", {"WORD=a word"}, timeout});
}

TEST(Process, TellsHowItEndedAndWhatItPrinted) {
  const Ended good = shell("echo \"$WORD\"; echo other >&2");
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.out, "a word\n");
  EXPECT_EQ(good.err, "other\n");
  EXPECT_EQ(shell("exit 3").how(), "ended with exit code 3");
  EXPECT_EQ(shell("kill -SEGV $$").how(), "ended with signal 11 (Segmentation fault)");
  EXPECT_FALSE(shell("exit 3").ok());
  EXPECT_FALSE(shell("kill -SEGV $$").ok());
  EXPECT_THROW(run_process({{"/no/such/program"}, "", {}, 0}), std::system_error);
}

TEST(Process, RunsInItsFolderWithoutInputAndWithoutWhatGitTellsItsHooks) {
  const TemporaryFolder folder("plumb-process-test");
  const Ended where = run_process({{"pwd", "-P"}, folder.path().string(), {}, 0});
  EXPECT_EQ(where.out, std::filesystem::canonical(folder.path()).string() + "\n");
  EXPECT_EQ(shell("cat").out, "");
  setenv("GIT_DIR", "/elsewhere", 1);
  EXPECT_EQ(shell("echo \"[$GIT_DIR]\"").out, "[]\n");
  unsetenv("GIT_DIR");
}

TEST(Process, WhatTakesTooLongIsEndedWithAllThatItStarted) {
  const TemporaryFolder folder("plumb-process-test");
  const std::string late = folder.path() / "late";
  const Ended ended = shell("(sleep 1; touch '" + late + "') & sleep 30", 0.2);
  EXPECT_TRUE(ended.timed_out);
  EXPECT_LT(ended.seconds, 5);
  EXPECT_EQ(ended.how().find("no result after 0."), 0u) << ended.how();
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_FALSE(std::filesystem::exists(late));
}

TEST(Process, ABuildThatHangsDoesNotBuild) {
  const Built built = build("sleep 60", testing::TempDir(), "no_such_file", {}, 0.2);
  EXPECT_FALSE(built.made);
  EXPECT_EQ(built.why.find("does not build: no result after 0."), 0u) << built.why;
  EXPECT_LT(built.seconds, 30);
}

TEST(Process, AnInterruptEndsItAndIsThrown) {
  const Interrupts interrupts;
  std::jthread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(getpid(), SIGINT);
  });
  try {
    shell("sleep 30");
    ADD_FAILURE() << "not interrupted";
  } catch (const Interrupted& interrupted) {
    EXPECT_STREQ(interrupted.what(), "stopped by signal 2 (Interrupt)");
  }
  EXPECT_THROW(shell("true"), Interrupted) << "once is for all that comes";
}

}  // namespace process_test
}  // namespace plumb::bisect
