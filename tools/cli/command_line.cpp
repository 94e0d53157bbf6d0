// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cases/tables/case_file.h"
#include "process/terminal.h"
#include "tools/cli/command_options.h"
#include "tools/cli/completion.h"
#include "tools/cli/help.h"
#include "tools/output.h"

namespace plumb::tools {

namespace {

// The subcommands of an app, in the order of the help.
std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::string unknown_command(const std::string& word, const std::vector<std::string>& names) {
  const std::string nearest = cases::nearest_name(word, names);
  return fmt::format("unknown command \"{}\"{}", word,
                     nearest.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                                     : fmt::format(" (did you mean {}?)", nearest));
}

// Message for a missing or unknown subcommand, also inside a group of subcommands.
std::string describe(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* group = &app;
  while (!group->get_subcommands().empty()) group = group->get_subcommands().front();
  const std::vector<std::string> left = group->remaining(), names = names_of_commands(*group);
  if (names.empty()) return error.what();
  if (!left.empty()) return unknown_command(left.front(), names);
  return fmt::format("a command is missing; there are {}", fmt::join(names, ", "));
}

std::string help_of(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string name = "plumb";
  for (const std::string& word : words) {
    const std::vector<std::string> names = names_of_commands(*command);
    if (names.empty()) throw UsageError(fmt::format("help: {} has no command {}", name, word));
    if (std::ranges::find(names, word) == names.end()) {
      throw UsageError("help: " + unknown_command(word, names));
    }
    command = command->get_subcommand(word);
    name += " " + word;
  }
  // App::help() would print the help of the command that was parsed: help.
  return command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal);
}

Action printing(std::string text) {
  return [text = std::move(text)] {
    put(text);
    return 0;
  };
}

void add_help(CLI::App& app, Action& action) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "print the help of plumb, or of a command");
  add_value(*command, "COMMAND", "COMMAND", *words, "as bisect case; none: the commands of plumb");
  command->callback([&app, &action, words] { action = printing(help_of(app, *words)); });
}

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "print a script with which bash or zsh completes plumb's words");
  add_value(*command, "SHELL", "SHELL", *shell, "bash or zsh: source <(plumb completion bash)")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([&app, &action, shell] { action = printing(completion_script(app, *shell)); });
}

// --color of each command that does something.
void add_color(CLI::App& app) {
  using process::ColorWhen;
  static const std::map<std::string, ColorWhen> kWhen = {
      {"auto", ColorWhen::automatic}, {"always", ColorWhen::always}, {"never", ColorWhen::never}};
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_subcommands(nullptr).empty()) {
      add_color(*command);
      continue;
    }
    begin_group(*command, "Terminal");
    command
        ->add_option_function<std::string>(
            "--color", [](const std::string& word) { process::set_color(kWhen.at(word)); },
            "auto, always or never (default: auto, on a terminal without NO_COLOR)")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->option_text("WHEN");
  }
}

// The three commands that answer the questions of most users come first.
void add_commands(CLI::App& app, Action& action) {
  add_case_commands(app, action);
  add_judge(app, action);
  add_bisect(app, action);
  add_report_commands(app, action);
  add_golden(app, action);
  add_study_commands(app, action);
  add_color(app);
  add_help(app, action);
  add_completion(app, action);
  const std::vector<std::pair<std::string, std::vector<std::string>>> groups = {
      {"Start here", {"run", "judge", "bisect"}},
      {"Cases and reports", {"list", "show", "report", "merge"}},
      {"Comparisons", {"golden", "agreement", "invariance"}},
      {"plumb itself", {"faults", "bench", "help", "completion"}}};
  for (const auto& [group, names] : groups) {
    for (const std::string& name : names) app.get_subcommand(name)->group(group);
  }
}

}  // namespace

Action read_command_line(int count, const char* const* arguments) {
  CLI::App app{"plumb checks GPU kernels of DeepSeek-V4 / V3.2 inference against a CPU reference."};
  app.name("plumb");
  app.formatter(std::make_shared<HelpText>());
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", PLUMB_VERSION, "print the version");
  app.require_subcommand(1);
  Action action;
  add_commands(app, action);
  app.footer("plumb help COMMAND explains a command.");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw UsageError(describe(app, error));
    std::ostringstream text;  // text of --help or --version
    app.exit(error, text, text);
    return printing(text.str());
  }
  return action;
}

}  // namespace plumb::tools
