// SPDX-License-Identifier: Apache-2.0
//
// plumb on a terminal and in a shell: help, colour, status lines, closed pipes, completion.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/support/command_line.h"

namespace plumb {
namespace terminal_test {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t code_points(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned>(c) & 0xC0U) != 0x80U;
  }));
}

struct Variable {
  const char *name, *value;
};

class OnATerminal : public CommandLine {
 protected:
  // Runs plumb on a pseudo-terminal of so many columns. `out` is all that the terminal got.
  Finished shown(const Words& words, int columns, const std::vector<Variable>& variables) const {
    const winsize size = {24, static_cast<unsigned short>(columns), 0, 0};
    int descriptor = -1;
    const pid_t child = forkpty(&descriptor, nullptr, nullptr, &size);
    if (child == 0) execute(words, variables);
    Finished finished;
    char part[4096];
    for (ssize_t n = 0; (n = read(descriptor, part, sizeof part)) > 0;) {
      finished.out.append(part, static_cast<std::size_t>(n));
    }
    close(descriptor);
    int status = 0;
    waitpid(child, &status, 0);
    finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return finished;
  }

  // Runs a line of bash in which $plumb is the program.
  Finished bash(const std::string& line) const {
    const std::string script = write("line.sh", "plumb=" PLUMB_BINARY "\n" + line + "\n");
    process::Command command{{"bash", script}};
    command.out = process::Redirection::file(path("bash.out"));
    command.err = process::Redirection::file(path("bash.err"));
    process::Child shell(command);
    EXPECT_TRUE(shell.wait(process::Deadline::in(kLongestRun)));
    shell.end();
    return {shell.ending().code, contents(path("bash.out")), contents(path("bash.err"))};
  }

 private:
  [[noreturn]] static void execute(const Words& words, const std::vector<Variable>& variables) {
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    std::vector<char*> arguments = {const_cast<char*>(PLUMB_BINARY)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(PLUMB_BINARY, arguments.data());
    _exit(127);
  }
};

Words commands_of(const std::string& help) {
  Words commands;
  for (const std::string& line : lines_of(help)) {
    if (line.size() > 2 && line[0] == ' ' && line[1] == ' ' && line[2] >= 'a' && line[2] <= 'z') {
      commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return commands;
}

void expect_fits(const std::string& help, const std::string& of) {
  for (const std::string& line : lines_of(help)) EXPECT_LE(line.size(), 80u) << of << "\n" << line;
  EXPECT_FALSE(has(help, "TEXT")) << of << " names the type of a value instead of the value";
  EXPECT_FALSE(has(help, "\n\n\n")) << of;
}

TEST_F(OnATerminal, HelpFitsInto80ColumnsAndBeginsWithTheThreeCommandsThatMatter) {
  const std::string help = run({"--help"}).out;
  expect_fits(help, "plumb");
  const Words commands = commands_of(help);
  ASSERT_GE(commands.size(), 14u) << help;
  EXPECT_EQ(Words(commands.begin(), commands.begin() + 3), (Words{"run", "judge", "bisect"}));
  for (const std::string& command : commands) {
    const std::string text = run({command, "--help"}).out;
    EXPECT_TRUE(has(text, "Usage: plumb " + command)) << text;
    expect_fits(text, command);
    EXPECT_EQ(text, run({"help", command}).out);
    if (command != "bisect" && command != "golden") continue;
    for (const std::string& inner : commands_of(text)) {
      expect_fits(run({command, inner, "--help"}).out, command + " " + inner);
      EXPECT_EQ(run({command, inner, "--help"}).out, run({"help", command, inner}).out);
    }
  }
}

TEST_F(OnATerminal, HelpOfAnUnknownCommandNamesTheNearestOne) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  expect_refused({"help", "rnu"}, "help: unknown command \"rnu\" (did you mean run?)");
  expect_refused({"help", "bisect", "comits"}, "(did you mean commits?)");
  expect_refused({"help", "run", "fast"}, "plumb run has no command fast");
}

TEST_F(OnATerminal, AReaderThatStopsReadingDoesNotChangeTheExitCode) {
  EXPECT_EQ(bash("$plumb list | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}").out, "0\n");
  EXPECT_EQ(bash("$plumb list --arguments | true; echo ${PIPESTATUS[0]}").out, "0\n");
  EXPECT_EQ(bash("$plumb run rms_norm/hidden_1/eager --json '' | true; echo ${PIPESTATUS[0]}").out,
            "0\n");
  EXPECT_EQ(bash("$plumb list >/dev/full; echo $?").out, "2\n") << "a full disk is an error";
}

TEST_F(OnATerminal, StatusLinesFitIntoTheWindowAndGoAway) {
  for (const int columns : {20, 40, 200}) {
    const std::string text = shown(small_run({"--color", "never"}), columns, {}).out;
    std::size_t longest = 0, lines = 0;
    for (auto at = text.find("\r\033[K["); at != std::string::npos;
         at = text.find("\r\033[K[", at + 1)) {
      const auto end = text.find('\r', at + 1);
      ASSERT_NE(end, std::string::npos) << "the last status line stays: " << text;
      longest = std::max(longest, code_points(text.substr(at + 4, end - at - 4)));
      ++lines;
    }
    EXPECT_GE(lines, 1u) << text;
    EXPECT_LT(longest, static_cast<std::size_t>(columns)) << text;
    EXPECT_TRUE(has(text, "1 passed, 0 failed")) << text;
  }
}

TEST_F(OnATerminal, ADumbTerminalGetsNoEscapes) {
  for (const char* term : {"dumb", ""}) {
    const Finished finished = shown(small_run({}), 80, {{"TERM", term}});
    EXPECT_EQ(finished.code, 0);
    EXPECT_FALSE(has(finished.out, "\033")) << finished.out;
  }
}

TEST_F(OnATerminal, ColourFollowsTheOptionThenTheEnvironment) {
  const std::string any = "\033[3";
  const auto on = [&](const Words& more, const std::vector<Variable>& variables) {
    return has(shown(small_run(more), 80, variables).out, any);
  };
  EXPECT_TRUE(on({}, {}));
  EXPECT_FALSE(on({}, {{"NO_COLOR", "1"}}));
  EXPECT_TRUE(on({}, {{"NO_COLOR", ""}}));
  EXPECT_TRUE(on({"--color", "always"}, {{"NO_COLOR", "1"}}));
  EXPECT_FALSE(on({"--color", "never"}, {}));
  EXPECT_FALSE(has(run(small_run({})).out, any)) << "a file has no colour";
  EXPECT_TRUE(has(run(small_run({"--color", "always"})).out, any));
  std::filesystem::remove(path("report.json"));
  expect_refused(small_run({"--color", "sometimes"}), "--color");
}

TEST_F(OnATerminal, BashCompletesCommandsOptionsAndCases) {
  const std::string head =
      "PATH=$(dirname $plumb):$PATH; source <($plumb completion bash)\n"
      "try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _plumb; printf '%s\\n' "
      "\"${COMPREPLY[@]}\"; }\n";
  EXPECT_EQ(bash(head + "try plumb jud").out, "judge\n");
  EXPECT_EQ(bash(head + "try plumb bisect env").out, "environments\n");
  EXPECT_EQ(bash(head + "try plumb bisect case --rep").out, "--repeat\n");
  EXPECT_EQ(bash(head + "try plumb run --last").out, "--last-failed\n");
  EXPECT_EQ(bash(head + "try plumb run --tier sm").out, "smoke\n");
  EXPECT_EQ(bash(head + "try plumb run --platform sim-s").out, "sim-sm90\n");
  EXPECT_EQ(bash(head + "try plumb run --op fused_add").out, "fused_add_rms_norm\n");
  EXPECT_EQ(bash(head + "try plumb run rms_norm/hidden_769/e").out, "rms_norm/hidden_769/eager\n");
  EXPECT_EQ(bash(head + "try plumb run mtp_inp").out, "mtp_input_rms_norm\n");
  EXPECT_EQ(bash(head + "try plumb run --json nothing_of_this_name").out, "\n");
  expect_refused({"completion"}, "SHELL is required");
  expect_refused({"completion", "fish"}, "fish");
  EXPECT_TRUE(has(run({"completion", "zsh"}).out, "bashcompinit"));
}

}  // namespace terminal_test
}  // namespace plumb
