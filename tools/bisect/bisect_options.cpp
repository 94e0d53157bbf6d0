// SPDX-License-Identifier: Apache-2.0
//
// Options of plumb bisect.
#include <memory>
#include <string>

#include "tools/bisect/bisect_arguments.h"
#include "tools/command_options.h"
#include "tools/commands.h"

namespace plumb::tools {

namespace {

// What every search is told: which run fails, and where it keeps what it knows.
void add_bisect_run(CLI::App& command, BisectSearchArguments& arguments) {
  bisect::Question& run = arguments.run;
  command.add_option("--platform", run.platform,
                     "where; default: the first simulated one on which it fails");
  add_repeatable(command, "--set", run.settings, "name=value on the row");
  add_repeatable(command, "--cases", run.case_files, "TOML file whose rows replace an op's");
  command.add_option("--seed", run.seed, "other inputs");
  command.add_option("--timeout", arguments.timeout, "seconds that the case may take; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  command.add_option(
      "--state", arguments.state,
      "file from which the same command goes on; \"\" keeps none; default: one named "
      "after the question");
  command.add_option("--json", arguments.json, "report for machines");
  command.add_flag("--quiet,-q", arguments.quiet, "only the report");
}

void add_own_ops_of(CLI::App& command, BisectSearchArguments& arguments) {
  add_repeatable(command, "--ops", arguments.run.own_ops,
                 "Python file that declares ops of its own (docs/own_op.md)");
}

// Of those that ask plumb run.
void add_bisect_search(CLI::App& command, BisectSearchArguments& arguments,
                       const char* name = "--case") {
  command.add_option(name, arguments.run.which, "what fails: op/row/scenario")->required();
  add_bisect_run(command, arguments);
  command
      .add_option("--repeat", arguments.repeat,
                  "runs that have to pass before something counts as good; default: as many as "
                  "the rate of the failure wants")
      ->check(CLI::Range(1, 1000000));
}

void add_bisect_commits(CLI::App& bisect, Action& action) {
  auto arguments = std::make_shared<BisectCommitsArguments>();
  CLI::App* command = bisect.add_subcommand("commits", "the commit since which a case fails");
  add_bisect_search(*command, arguments->search);
  command->add_option("--good", arguments->good, "a commit where it passes")->required();
  command->add_option("--bad", arguments->bad, "a later one where it fails")->required();
  command->add_option("--repo", arguments->repository, "a folder of the repository")
      ->capture_default_str();
  command->add_option("--build", arguments->build, "shell command that builds a commit")
      ->required();
  auto* plumb = command->add_option("--plumb", arguments->plumb,
                                    "program of plumb that the build makes in the worktree; "
                                    "default: build/sim/bin/plumb");
  command
      ->add_option("--plugin", arguments->plugin,
                   "plug-in that it makes there, for this plumb to judge")
      ->excludes(plumb);
  command->callback([&action, arguments] {
    action = [arguments] { return bisect_commits_command(*arguments); };
  });
}

void add_bisect_case(CLI::App& bisect, Action& action) {
  auto arguments = std::make_shared<BisectCaseArguments>();
  CLI::App* command = bisect.add_subcommand("case", "the smallest case that fails in the same way");
  add_bisect_search(*command, arguments->search, "CASE,--case");
  add_own_ops_of(*command, arguments->search);
  command->add_option("--plugin", arguments->search.run.plugin,
                      "library or Python file with the kernels to judge (docs/plugins.md)");
  command
      ->add_option("--time", arguments->seconds,
                   "seconds after which the smallest so far is the answer; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--jobs,-j", arguments->jobs, "runs side by side; default: cores")
      ->check(CLI::Range(1, 256));
  command->callback(
      [&action, arguments] { action = [arguments] { return bisect_case_command(*arguments); }; });
}

void add_bisect_ops(CLI::App& bisect, Action& action) {
  auto arguments = std::make_shared<BisectOpsArguments>();
  CLI::App* command =
      bisect.add_subcommand("ops", "the op, or what beside ops, that makes a decode step fail");
  command->add_option("CASE", arguments->search.run.which, "decode_step/row/graph mode")
      ->required();
  add_bisect_run(*command, arguments->search);
  auto* twice = command->add_flag("--twice", arguments->twice,
                                  "run the steps twice: the first call that made other bits");
  command->add_option("--times", arguments->times, "how often the same is run once more")
      ->needs(twice)
      ->check(CLI::Range(1, 1000000));
  command->callback(
      [&action, arguments] { action = [arguments] { return bisect_ops_command(*arguments); }; });
}

void add_bisect_environments(CLI::App& bisect, Action& action) {
  auto arguments = std::make_shared<BisectEnvironmentsArguments>();
  CLI::App* command = bisect.add_subcommand(
      "environments", "the environment since which a case fails, or the toggles that make it fail");
  add_bisect_search(*command, arguments->search);
  add_own_ops_of(*command, arguments->search);
  command
      ->add_option("--env", arguments->file,
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
  CLI::App* command =
      bisect.add_subcommand("explain", "the decision log of a state file; runs nothing");
  command->add_option("FILE", *file, "what --state named")->required();
  command->callback([&action, file] { action = [file] { return bisect_explain_command(*file); }; });
}

}  // namespace

void add_bisect(CLI::App& app, Action& action) {
  CLI::App* bisect =
      app.add_subcommand("bisect", "what made a case fail: a commit, an environment, an op");
  bisect->require_subcommand(1);
  add_bisect_commits(*bisect, action);
  add_bisect_case(*bisect, action);
  add_bisect_ops(*bisect, action);
  add_bisect_environments(*bisect, action);
  add_bisect_explain(*bisect, action);
}

}  // namespace plumb::tools
