// SPDX-License-Identifier: Apache-2.0
//
// Child processes: all ways in which they end, and that none is left running.
#include "process/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "process/interrupts.h"
#include "process/output_file.h"
#include "process/run.h"

namespace plumb::process {
namespace child_test {

Ended shell(const std::string& script, double timeout = 0) {
  return run_to_end({{"/bin/sh", "-c", script}, "", {"WORD=a word", "HOME"}}, {timeout});
}

// True for a process that has ended, even if its new parent has not waited for it yet.
bool has_ended(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name = text.rfind(')');
  return name == std::string::npos || text.compare(name, 3, ") Z") == 0;
}

// Waits a few seconds: a killed process may take a moment to end.
bool is_gone(pid_t process) {
  for (int i = 0; i < 200; ++i) {
    if (has_ended(process)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

TEST(Child, TellsHowItEndedAndWhatItPrinted) {
  const Ended good = shell("echo \"$WORD[$HOME]\"; echo other >&2");
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.out, "a word[]\n");
  EXPECT_EQ(good.err, "other\n");
  EXPECT_EQ(shell("exit 3").how(), "ended with exit code 3");
  EXPECT_EQ(shell("kill -SEGV $$").how(), "ended with signal 11 (Segmentation fault)");
  EXPECT_FALSE(shell("exit 3").ok());
  EXPECT_EQ(shell("cat").out, "");
}

TEST(Child, AProgramOrFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(Child({{"/no/such/program"}}), std::system_error);
  EXPECT_THROW(Child({{"no-such-program-in-path"}}), std::system_error);
  EXPECT_THROW(Child({{"true"}, "/no/such/folder"}), std::system_error);
  EXPECT_THROW(Child({.words = {"true"}, .out = Redirection::file("/no/such/folder/file")}),
               std::system_error);
}

TEST(Child, TooLateIsEndedWithAllThatItStarted) {
  const Ended ended = shell("sleep 300 & echo $!; sleep 300", 0.3);
  EXPECT_TRUE(ended.timed_out);
  EXPECT_LT(ended.seconds, 10);
  EXPECT_EQ(ended.how().find("no result after 0."), 0u) << ended.how();
  EXPECT_TRUE(is_gone(static_cast<pid_t>(std::stol(ended.out))));
}

TEST(Child, AProcessInTheBackgroundOutlivesAProgramThatEnds) {
  const Ended ended = shell("sleep 300 >/dev/null 2>&1 & echo $!");
  const auto background = static_cast<pid_t>(std::stol(ended.out));
  EXPECT_EQ(kill(background, 0), 0);
  kill(background, SIGKILL);
}

TEST(Child, AnInterruptEndsItAndIsThrown) {
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
    EXPECT_EQ(name_of_signal(interrupted.signal()), "SIGINT");
  }
  EXPECT_THROW(shell("true"), Interrupted) << "all later calls are interrupted too";
}

// The thread that starts a child may end before it.
TEST(Child, OutlivesTheThreadThatStartedIt) {
  std::optional<Child> child;
  std::thread([&] { child.emplace(Command{{"sleep", "0.3"}}); }).join();
  EXPECT_TRUE(child->wait(Deadline::in(20)));
  EXPECT_TRUE(child->ending().ok()) << child->ending().text();
}

// The stub starts a child, prints its process id, and waits.
TEST(Child, DoesNotOutliveItsParent) {
  const OutputFile out;
  Command command{{PLUMB_PROCESS_STUB, "parent"}};
  command.out = Redirection::to_descriptor(out.descriptor());
  Child parent(command);
  for (int i = 0; i < 1000 && out.text().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto grandchild = static_cast<pid_t>(std::stol(out.text()));
  EXPECT_FALSE(has_ended(grandchild));
  kill(parent.id(), SIGKILL);
  EXPECT_TRUE(is_gone(grandchild));
}

TEST(Child, ItsStreamsLeadWhereTheyAreSent) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("plumb_child_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "in") << "text";
  Command command{{"sh", "-c", "cat; pwd -P; echo other >&2"}, folder.string()};
  command.in = Redirection::file(folder / "in");
  command.out = Redirection::file(folder / "out");
  command.err = Redirection::closed();
  Child child(command);
  EXPECT_TRUE(child.wait(Deadline::in(20)));
  std::ifstream out(folder / "out");
  const std::string text{std::istreambuf_iterator<char>(out), {}};
  EXPECT_EQ(text, "text" + std::filesystem::canonical(folder).string() + "\n");
  std::filesystem::remove_all(folder);
}

TEST(Child, AFunctionRunsInACopyOfThisProcess) {
  int here = 1;
  Child child([&] { return here = 7; }, {});
  EXPECT_TRUE(child.wait(Deadline::in(20)));
  EXPECT_EQ(child.ending().code, 7);
  EXPECT_EQ(here, 1);
}

}  // namespace child_test
}  // namespace plumb::process
