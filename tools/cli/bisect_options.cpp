// SPDX-License-Identifier: Apache-2.0
//
// Command-line options of plumb bisect.
#include <memory>
#include <string>

#include "tools/bisect/bisect_arguments.h"
#include "tools/cli/command_options.h"
#include "tools/commands.h"

namespace plumb::tools {

namespace {

// Options of every search: the failing run, and the state file.
void add_bisect_run(CLI::App& command, BisectSearchArguments& arguments) {
  bisect::Question& run = arguments.run;
  begin_group(command, "The failing run");
  add_value(command, "--platform", "NAME", run.platform,
            "where to run (default: the first simulated platform on which the case fails)");
  add_repeatable(command, "--set", "NAME=VALUE", run.settings, "change a parameter of the row");
  add_repeatable(command, "--cases", "FILE", run.case_files,
                 "TOML file or recorded row; its rows replace those of its op");
  add_value(command, "--seed", "N", run.seed, "other inputs");
  add_value(command, "--timeout", "SECONDS", arguments.timeout,
            "time limit of the case; 0 for none")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  begin_group(command, "The search");
  add_value(command, "--state", "FILE", arguments.state,
            "file from which the same command continues; \"\" keeps none (default: a file named "
            "after the question)");
  add_json(command, arguments.json);
  command.add_flag("--quiet,-q", arguments.quiet, "print the report only");
}

// Options of the searches that ask plumb run.
void add_bisect_search(CLI::App& command, BisectSearchArguments& arguments,
                       const char* name = "--case") {
  add_value(command, name, "CASE", arguments.run.which, "the failing case: op/row/scenario")
      ->required();
  add_bisect_run(command, arguments);
  add_value(command, "--repeat", "N", arguments.repeat,
            "passes in a row that make a candidate good (default: from the measured failure rate)")
      ->check(CLI::Range(1, 1000000));
}

void add_bisect_commits(CLI::App& bisect, Action& action) {
  auto arguments = std::make_shared<BisectCommitsArguments>();
  CLI::App* command = bisect.add_subcommand("commits", "find the commit since which a case fails");
  add_bisect_search(*command, arguments->search);
  begin_group(*command, "The commits");
  add_value(*command, "--good", "COMMIT", arguments->good, "commit at which the case passes")
      ->required();
  add_value(*command, "--bad", "COMMIT", arguments->bad, "later commit at which the case fails")
      ->required();
  add_value(*command, "--repo", "FOLDER", arguments->repository, "folder of the repository")
      ->capture_default_str();
  add_value(*command, "--build", "COMMAND", arguments->build, "shell command that builds a commit")
      ->required();
  auto* plumb = add_value(*command, "--plumb", "PATH", arguments->plumb,
                          "program of plumb that the build makes in the worktree (default: "
                          "build/sim/bin/plumb)");
  add_value(*command, "--plugin", "PATH", arguments->plugin,
            "plug-in that the build makes in the worktree; this plumb judges it")
      ->excludes(plumb);
  command->callback([&action, arguments] {
    action = [arguments] { return bisect_commits_command(*arguments); };
  });
}

void add_bisect_case(CLI::App& bisect, Action& action) {
  auto arguments = std::make_shared<BisectCaseArguments>();
  CLI::App* command =
      bisect.add_subcommand("case", "find the smallest case that fails in the same way");
  add_bisect_search(*command, arguments->search, "CASE,--case");
  add_own_ops(*command, arguments->search.run.own_ops);
  add_plugin(*command, arguments->search.run.plugin);
  add_value(*command, "--time", "SECONDS", arguments->seconds,
            "time after which the smallest case so far is the answer; 0 for none")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  add_jobs(*command, arguments->jobs, "runs at a time (default: cores)");
  command->callback(
      [&action, arguments] { action = [arguments] { return bisect_case_command(*arguments); }; });
}

void add_bisect_ops(CLI::App& bisect, Action& action) {
  auto arguments = std::make_shared<BisectOpsArguments>();
  CLI::App* command = bisect.add_subcommand(
      "ops", "find the op, or the part of the host, that makes a decode step fail");
  add_value(*command, "CASE", "CASE", arguments->search.run.which, "decode_step/row/graph mode")
      ->required();
  add_bisect_run(*command, arguments->search);
  auto* twice = command->add_flag("--twice", arguments->twice,
                                  "run the steps twice, and name the first call with other bits");
  add_plugin(*command, arguments->search.run.plugin);
  add_value(*command, "--times", "N", arguments->times, "number of repetitions of --twice")
      ->needs(twice)
      ->check(CLI::Range(1, 1000000));
  command->callback(
      [&action, arguments] { action = [arguments] { return bisect_ops_command(*arguments); }; });
}

void add_bisect_environments(CLI::App& bisect, Action& action) {
  auto arguments = std::make_shared<BisectEnvironmentsArguments>();
  CLI::App* command = bisect.add_subcommand(
      "environments", "find the environment, or the toggles, that make a case fail");
  add_bisect_search(*command, arguments->search);
  add_own_ops(*command, arguments->search.run.own_ops);
  add_value(*command, "--env", "FILE", arguments->file,
            "TOML file of environments or toggles (docs/bisect.md)")
      ->required();
  command->add_flag("--all", arguments->all,
                    "judge every environment, or every toggle alone, instead of searching");
  command->callback([&action, arguments] {
    action = [arguments] { return bisect_environments_command(*arguments); };
  });
}

void add_bisect_explain(CLI::App& bisect, Action& action) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = bisect.add_subcommand("explain", "print the decisions of a state file");
  add_value(*command, "FILE", "FILE", *file, "state file of a search")->required();
  command->callback([&action, file] { action = [file] { return bisect_explain_command(*file); }; });
}

}  // namespace

void add_bisect(CLI::App& app, Action& action) {
  CLI::App* bisect =
      app.add_subcommand("bisect", "find the commit, environment, case or op behind a failure");
  bisect->require_subcommand(1);
  add_bisect_commits(*bisect, action);
  add_bisect_case(*bisect, action);
  add_bisect_ops(*bisect, action);
  add_bisect_environments(*bisect, action);
  add_bisect_explain(*bisect, action);
}

}  // namespace plumb::tools
