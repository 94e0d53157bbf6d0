// SPDX-License-Identifier: Apache-2.0
//
// Options of plumb golden.
#include <memory>
#include <string>
#include <utility>

#include "tools/command_options.h"
#include "tools/commands.h"

namespace plumb::tools {

namespace {

constexpr const char* kGoldensMeaning = "folder of goldens; default: the repository's own";

void add_golden_cases(CLI::App& command, GoldenArguments& arguments) {
  add_repeatable(command, "--case", arguments.selection.patterns,
                 "op, op/row, op/row/scenario; * and ? as in a shell");
  add_repeatable(command, "--op", arguments.selection.ops, "only this op");
  add_repeatable(command, "--platform", arguments.selection.platforms,
                 "default: every simulated one");
}

// A subcommand of golden with arguments of its own.
template <class Function>
std::pair<CLI::App*, std::shared_ptr<GoldenArguments>> add_golden_command(
    CLI::App& golden, Action& action, const char* name, const char* meaning, Function function) {
  auto arguments = std::make_shared<GoldenArguments>();
  CLI::App* command = golden.add_subcommand(name, meaning);
  command->add_option("--goldens", arguments->goldens, kGoldensMeaning);
  command->callback([&action, arguments, function] {
    action = [arguments, function] { return function(*arguments); };
  });
  return {command, arguments};
}

}  // namespace

void add_golden(CLI::App& app, Action& action) {
  CLI::App* golden = app.add_subcommand("golden", "what platforms computed before");
  golden->require_subcommand(1);
  const auto [regen, regen_arguments] = add_golden_command(
      *golden, action, "regen", "show what moved, and store it", golden_regen_command);
  add_golden_cases(*regen, *regen_arguments);
  regen->add_option("--reason", regen_arguments->reason, "why results may change, in one line");
  regen->add_option("--commit", regen_arguments->commit,
                    "that this plumb was built from, where git is not there to ask");
  regen->add_flag("--dry-run", regen_arguments->dry_run, "only show it, which needs no reason");
  const auto [check, check_arguments] =
      add_golden_command(*golden, action, "check", "compare what is computed now with the store",
                         golden_check_command);
  add_golden_cases(*check, *check_arguments);
  check->add_flag("--exact", check_arguments->exact, "bit for bit on any toolchain");
  const auto [diff, diff_arguments] = add_golden_command(
      *golden, action, "diff", "compare two files, platforms or revisions", golden_diff_command);
  for (std::string* side : {&diff_arguments->first, &diff_arguments->second}) {
    diff->add_option(side == &diff_arguments->first ? "A" : "B", *side,
                     "a file; a platform; a git revision, or revision:platform")
        ->required();
  }
  const auto [approve, approve_arguments] = add_golden_command(
      *golden, action, "approve", "take a reviewed file into the store", golden_approve_command);
  approve->add_option("FILE", approve_arguments->first, "a golden file")->required();
  approve
      ->add_option("--results", approve_arguments->results,
                   "digest of the results that were reviewed, as diff prints it")
      ->required();
  approve->add_option("--reason", approve_arguments->reason, "why they are right, in one line");
}

}  // namespace plumb::tools
