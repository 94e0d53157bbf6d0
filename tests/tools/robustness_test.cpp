// SPDX-License-Identifier: Apache-2.0
//
// plumb run without enough processes, descriptors or memory, or with failing files: each problem
// costs one case or gives one clear line, and no failure becomes a pass. The plug-ins are
// tests/must_fail/plugins/processes.c.
#include <signal.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "process/run.h"
#include "tests/support/command_line.h"

namespace plumb {
namespace robustness_test {

std::string library(const std::string& fault) {
  return std::string(PLUMB_TEST_PLUGINS) + "/processes_" + fault + ".so";
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t times = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++times;
  return times;
}

// Number of processes that have the file mapped.
std::size_t processes_with(const std::string& file) {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    found += contents(entry.path() / "maps").find(file) != std::string::npos;
  }
  return found;
}

class Robustness : public CommandLine {
 protected:
  Words plugin_run(const std::string& fault, const Words& more) const {
    Words words{"run",      "--plugin", library(fault),     "--platform",
                "sim-sm90", "--json",   path("report.json")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Runs plumb from a shell after the command `before`.
  process::Ended shell_run(const std::string& before, const std::string& arguments) const {
    return process::run_to_end(
        {{"/bin/sh", "-c", before + "; exec \"$0\" run " + arguments, PLUMB_BINARY}, folder_},
        {300});
  }
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Robustness, ACrashIsAFailureEvenIfASecondRunPasses) {
  for (const Words& more : {Words{}, Words{"--bisect"}, Words{"--no-diagnosis"}}) {
    setenv("PLUMB_TEST_ONCE", path("once").c_str(), 1);
    std::filesystem::remove(path("once"));
    Words words = plugin_run("crashes_once", {"--case", "rms_norm/hidden_1/eager"});
    words.insert(words.end(), more.begin(), more.end());
    const Finished crashed = run(words);
    EXPECT_EQ(crashed.code, 1) << crashed.out << crashed.err;
    EXPECT_SAYS(crashed.out, "crash: its process ended with signal 11 (Segmentation fault)");
    EXPECT_SAYS(crashed.out, "\n0 passed, 1 failed");
    EXPECT_EQ(run(words).code, 0) << "the kernel is right";
    unsetenv("PLUMB_TEST_ONCE");
  }
}

// Standard output is buffered, so an error line could land in the middle of an earlier line.
TEST_F(Robustness, AnErrorIsALineOfItsOwnIfBothOutputsAreOneFile) {
  const std::string plugin = std::string(PLUMB_TEST_PLUGINS) + "/launches_ignores_weight.so";
  const auto ended =
      shell_run("exec > both 2>&1",
                "--plugin " + plugin + " --platform sim-sm90 --op rms_norm -x --jobs 1 --json ''");
  EXPECT_EQ(ended.code, 1);
  EXPECT_SAYS(contents(path("both")), "\nplumb: stopped after 1 failure");
}

TEST_F(Robustness, AForkDoesNotShiftTheAnswersOfLaterCases) {
  const Finished finished = run(plugin_run(
      "forks", {"--jobs", "1", "--case", "rms_norm/hidden_1/eager", "--case",
                "rms_norm/hidden_257/eager", "--case", "q_kv_rms_norm/one_token/eager"}));
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_SAYS(finished.out, "FAIL  q_kv_rms_norm/one_token/eager");
  EXPECT_SAYS(finished.out, "\n2 passed, 1 failed");
}

TEST_F(Robustness, APlugInThatEndsItsChannelAndHangsIsEnded) {
  for (const char* fault : {"shuts_down", "closes"}) {
    const auto start = std::chrono::steady_clock::now();
    const Finished finished =
        run(plugin_run(fault, {"--timeout", "3", "--case", "rms_norm/hidden_1/eager"}));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    EXPECT_EQ(finished.code, 1) << finished.err;
    EXPECT_SAYS(finished.out, "crash: its process hung up");
    EXPECT_SAYS(finished.out, "\n0 passed, 1 failed");
  }
}

TEST_F(Robustness, ACopyOfAPlugInsProcessEndsWithTheRun) {
  const Finished finished =
      run(plugin_run("copies", {"--timeout", "3", "--case", "rms_norm/hidden_1/eager"}));
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_SAYS(finished.out, "timeout: ");
  EXPECT_EQ(processes_with(library("copies")), 0u);
}

TEST_F(Robustness, AnIgnoredEndOfChildrenIsNotInherited) {
  const process::Ended ended =
      shell_run("trap '' CHLD", "--case rms_norm/hidden_1/eager --json \"\" --jobs 1");
  EXPECT_FALSE(ended.timed_out);
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
}

TEST_F(Robustness, NonsenseFromAPlugInsProcessCostsOneCase) {
  const Finished finished =
      run(plugin_run("nonsense", {"--case", "rms_norm/hidden_1/eager", "--case",
                                  "q_kv_rms_norm/one_token/eager"}));
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_SAYS(finished.out, "crash: its process answered another request");
  EXPECT_SAYS(finished.out, "FAIL  q_kv_rms_norm/one_token/eager");
  EXPECT_TRUE(std::filesystem::exists(path("report.json")));
}

// The process must pass, or refuse with one line. It must not crash or hang.
void expect_clear(const process::Ended& ended) {
  EXPECT_EQ(ended.signal, 0) << ended.err;
  EXPECT_FALSE(ended.timed_out);
  if (ended.code == 0) return;
  EXPECT_EQ(ended.code, 2) << ended.out << ended.err;
  EXPECT_EQ(ended.err.find("plumb: "), 0u) << ended.err;
  EXPECT_EQ(count(ended.err, "\n"), 1u) << ended.err;
}

TEST_F(Robustness, FewDescriptorsMeanFewWorkersOrAClearLine) {
  const std::string some = "--case 'rms_norm/hidden_*/eager' --platform sim-sm90 --json \"\" -q ";
  for (const int descriptors : {5, 6, 7, 8, 9}) {
    expect_clear(shell_run("ulimit -n " + std::to_string(descriptors), some));
  }
  const process::Ended few = shell_run("ulimit -n 20", some + "--jobs 16");
  EXPECT_EQ(few.code, 0) << few.out << few.err;
  EXPECT_EQ(few.err, "");
}

TEST_F(Robustness, AVariableAloneMakesNoWorker) {
  for (const char* value : {"x", "3", "0", ""}) {
    setenv("PLUMB_WORKER_CHANNEL", value, 1);
    expect_refused(small_run({}), "PLUMB_WORKER_CHANNEL is set, but this process was not started");
    expect_refused(small_run({"--bisect"}), "PLUMB_WORKER_CHANNEL is set", 128);
    unsetenv("PLUMB_WORKER_CHANNEL");
  }
}

TEST_F(Robustness, AReportBeyondTheLimitOfFileSizesIsAClearLine) {
  const process::Ended ended = shell_run(
      "exec >/dev/null; ulimit -f 1",
      "--case rms_norm/hidden_1/eager --case rms_norm/hidden_257/eager --json report.json");
  EXPECT_EQ(ended.how(), "ended with exit code 2");
  EXPECT_EQ(ended.err, "plumb: cannot write report.json: File too large\n");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Robustness, TooLittleMemoryForACaseIsSaid) {
  const process::Ended ended =
      // The limit leaves 4 GiB: the simulator reserves 64 GiB of addresses. One tensor takes 4 GiB.
      shell_run("ulimit -v 71303168",
                "--case rms_norm/hidden_1/eager --platform sim-sm90 --jobs 1 --set "
                "tokens=65536 --set hidden=32768 --json report.json");
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_SAYS(ended.out, "crash: not enough memory in its process");
}
#endif

// Starts a run of the smoke tier in the background.
class Interruption : public Robustness {
 protected:
  void SetUp() override {
    Robustness::SetUp();
    std::ofstream(path("report.json")) << "{\"older\": true}";
  }

  process::Child start_run() const {
    process::Command command{{PLUMB_BINARY, "run", "--tier", "smoke", "--json", "report.json",
                              "--junit", "report.xml", "--quiet"},
                             folder_};
    command.out = process::Redirection::file(path("out"));
    command.err = process::Redirection::file(path("err"));
    return process::Child(command);
  }

  // Waits until plumb catches SIGTERM, which it does from the start of its command.
  static void wait_until_it_runs(pid_t process) {
    const std::string status = "/proc/" + std::to_string(process) + "/status";
    for (int i = 0; i < 1000; ++i) {
      const std::string text = contents(status);
      const std::size_t caught = text.find("SigCgt:");
      if (caught == std::string::npos) return;
      if ((std::stoull(text.substr(caught + 7), nullptr, 16) & (1u << (SIGTERM - 1))) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  // Number of processes of plumb that run in this test's folder: the main process and its workers.
  std::size_t processes_left() const {
    std::size_t left = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code gone;
      const auto folder = std::filesystem::read_symlink(entry.path() / "cwd", gone);
      left += !gone && folder == std::filesystem::canonical(folder_);
    }
    return left;
  }

  void expect_marked(const std::string& name, int code) const {
    const auto json = nlohmann::json::parse(contents(path("report.json")));
    EXPECT_EQ(json.at("exit_code"), code);
    EXPECT_EQ(json.at("interrupted").at("why"), "interrupted by " + name);
    EXPECT_EQ(json.at("interrupted").at("done"), json.at("cases").size());
    EXPECT_LT(json.at("cases").size(), json.at("interrupted").at("cases"));
    const std::string line =
        "interrupted by " + name + ": " + std::to_string(json.at("cases").size()) + " of ";
    EXPECT_SAYS(contents(path("report.xml")), "<error message=\"" + line);
    EXPECT_SAYS(contents(path("report.xml")), "</testsuites>\n");
    EXPECT_SAYS(contents(path("out")), line);
    EXPECT_EQ(contents(path("err")).find("plumb: " + line), 0u) << contents(path("err"));
  }
};

TEST_F(Interruption, ReportsHoldWhatIsDoneAndNoProcessIsLeft) {
  for (int moment = 0; moment < 10; ++moment) {
    const int signal = moment % 3 == 2 ? SIGTERM : SIGINT;
    process::Child plumb = start_run();
    wait_until_it_runs(plumb.id());
    std::this_thread::sleep_for(std::chrono::milliseconds(moment * 137 % 1500));
    kill(plumb.id(), signal);
    ASSERT_TRUE(plumb.wait(process::Deadline::in(60))) << "moment " << moment;
    EXPECT_EQ(plumb.ending().text(), "ended with exit code " + std::to_string(128 + signal));
    plumb.release();
    EXPECT_EQ(processes_left(), 0u) << "moment " << moment;
    expect_marked(signal == SIGINT ? "SIGINT" : "SIGTERM", 128 + signal);
  }
}

// The second signal may be of another kind. The case starts at once and takes seconds, and the
// first signal waits for its end.
TEST_F(Interruption, ASecondSignalEndsARunInThisProcess) {
  for (const int second : {SIGINT, SIGTERM}) {
    process::Command command{
        {PLUMB_BINARY, "run", "--case", "decode_step/v4_burst/full", "--in-process"}, folder_};
    command.out = process::Redirection::file(path("out"));
    process::Child plumb(command);
    wait_until_it_runs(plumb.id());
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    kill(plumb.id(), SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(plumb.id(), second);
    EXPECT_TRUE(plumb.wait(process::Deadline::in(60)));
    EXPECT_EQ(plumb.ending().signal, second) << plumb.ending().text();
  }
}

TEST_F(Interruption, AKilledRunLeavesNoProcess) {
  process::Child plumb = start_run();
  wait_until_it_runs(plumb.id());
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  kill(plumb.id(), SIGKILL);
  ASSERT_TRUE(plumb.wait(process::Deadline::in(60)));
  plumb.release();
  for (int i = 0; i < 100 && processes_left() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(processes_left(), 0u);
}

}  // namespace robustness_test
}  // namespace plumb
