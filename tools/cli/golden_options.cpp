// SPDX-License-Identifier: Apache-2.0
//
// Options of plumb golden.
#include <memory>
#include <string>
#include <utility>

#include "tools/cli/command_options.h"
#include "tools/commands.h"

namespace plumb::tools {

namespace {

constexpr const char* kGoldensMeaning = "folder of goldens (default: plumb's own)";

void add_golden_cases(CLI::App& command, GoldenArguments& arguments) {
  add_names(command, "--case", "PATTERN", arguments.selection.patterns,
            "op, op/row or op/row/scenario; * and ? as in a shell");
  add_names(command, "--op", "OP", arguments.selection.ops, "all cases of these ops");
  add_names(command, "--platform", "NAME", arguments.selection.platforms,
            "where to run (default: every simulated platform)");
  add_repeatable(command, "--cases", "FILE", arguments.selection.case_files,
                 "TOML file or recorded row; its rows replace those of its op");
  add_plugin(command, arguments.selection.plugin);
}

void add_golden_reports(CLI::App& command, GoldenArguments& arguments) {
  add_value(command, "--json", "FILE", arguments.json,
            "write the differences as JSON; - writes them to standard output instead of the text");
  add_value(command, "--html", "FILE", arguments.html, "write the differences as a page");
}

void add_store(CLI::App& command, GoldenArguments& arguments) {
  add_value(command, "--goldens", "FOLDER", arguments.goldens, kGoldensMeaning);
}

// A subcommand of golden with arguments of its own.
template <class Function>
std::pair<CLI::App*, std::shared_ptr<GoldenArguments>> add_golden_command(
    CLI::App& golden, Action& action, const char* name, const char* meaning, Function function) {
  auto arguments = std::make_shared<GoldenArguments>();
  CLI::App* command = golden.add_subcommand(name, meaning);
  command->callback([&action, arguments, function] {
    action = [arguments, function] { return function(*arguments); };
  });
  return {command, arguments};
}

// Commands for a review.
void add_golden_reviews(CLI::App& golden, Action& action) {
  const auto [diff, diff_arguments] = add_golden_command(
      golden, action, "diff", "compare two files, platforms or revisions", golden_diff_command);
  add_store(*diff, *diff_arguments);
  for (std::string* side : {&diff_arguments->first, &diff_arguments->second}) {
    const char* const name = side == &diff_arguments->first ? "A" : "B";
    add_value(*diff, name, name, *side, "a file, a platform, a git revision, or revision:platform")
        ->required();
  }
  add_golden_reports(*diff, *diff_arguments);
  const auto [approve, approve_arguments] = add_golden_command(
      golden, action, "approve", "take a reviewed file into the store", golden_approve_command);
  add_store(*approve, *approve_arguments);
  add_value(*approve, "FILE", "FILE", approve_arguments->first, "a golden file")->required();
  add_value(*approve, "--results", "DIGEST", approve_arguments->results,
            "digest of the reviewed results, as golden diff prints it")
      ->required();
  add_value(*approve, "--reason", "REASON", approve_arguments->reason,
            "why the results are right, in one line");
  const auto [show, show_arguments] = add_golden_command(
      golden, action, "show", "print a golden file as text, for git diff", golden_show_command);
  add_value(*show, "FILE", "FILE", show_arguments->first, "a golden file")->required();
}

}  // namespace

void add_golden(CLI::App& app, Action& action) {
  CLI::App* golden =
      app.add_subcommand("golden", "store results per platform, and compare with them later");
  golden->require_subcommand(1);
  const auto [regen, regen_arguments] = add_golden_command(
      *golden, action, "regen", "compute results again, show what moved, and store it",
      golden_regen_command);
  add_store(*regen, *regen_arguments);
  add_golden_cases(*regen, *regen_arguments);
  add_golden_reports(*regen, *regen_arguments);
  add_value(*regen, "--reason", "REASON", regen_arguments->reason,
            "why results may change, in one line (required without --dry-run)");
  add_value(*regen, "--commit", "COMMIT", regen_arguments->commit,
            "commit that this binary was built from, if git is missing");
  regen->add_flag("--dry-run", regen_arguments->dry_run, "show what moved and store nothing");
  regen->add_flag("--sketches", regen_arguments->sketches,
                  "also add sketches, or values that are now stored, to\n"
                  "goldens whose results stay");
  const auto [check, check_arguments] = add_golden_command(
      *golden, action, "check", "compute results again, and compare them with the store",
      golden_check_command);
  add_store(*check, *check_arguments);
  add_golden_cases(*check, *check_arguments);
  check->add_flag("--exact", check_arguments->exact, "require equal bits with any toolchain");
  add_golden_reviews(*golden, action);
}

}  // namespace plumb::tools
