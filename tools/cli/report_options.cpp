// SPDX-License-Identifier: Apache-2.0
//
// Options of the commands that read traces and reports.
#include <memory>

#include "tools/cli/command_options.h"
#include "tools/commands.h"

namespace plumb::tools {

namespace {

void add_call_files(CLI::App& command, JudgeArguments& arguments) {
  begin_group(command, "One call");
  add_value(command, "--call", "CALL", arguments.call, "judge only RANK/STEP/NUMBER");
  add_value(command, "--repro", "FILE.py", arguments.repro,
            "write the first wrong call as a Python file that needs torch only")
      ->check(check_named);
  CLI::Option* const extract =
      add_value(command, "--extract", "CALL", arguments.extract,
                "write the call RANK/STEP/NUMBER as a row for plumb run --cases")
          ->check([](const std::string& call) {
            return std::string(call.empty() ? "a call is RANK/STEP/NUMBER" : "");
          });
  add_value(command, "--output", "FILE", arguments.output,
            "file of --extract (default: the name of the row)")
      ->needs(extract);
}

void add_merge(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand("merge", "join the reports of all shards of a run");
  add_value(*command, "REPORT", "REPORT", arguments->reports,
            "JSON report of one shard, or of another platform")
      ->required();
  add_value(*command, "--output,-o", "FILE", arguments->json, "JSON report of the whole run")
      ->capture_default_str();
  add_value(*command, "--junit", "FILE", arguments->junit, "JUnit report");
  command->add_flag("--quiet,-q", arguments->quiet, "print failures and the summary only");
  command->callback(
      [&action, arguments] { action = [arguments] { return merge_command(*arguments); }; });
}

void add_report(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "draw JSON reports as a page (docs/report.md)");
  add_value(*command, "REPORT", "REPORT", arguments->reports,
            "JSON report of plumb run, faults, judge or golden diff; several of plumb run, the "
            "oldest first")
      ->required();
  add_value(*command, "--output,-o", "FILE", arguments->output, "HTML file")->required();
  command->callback(
      [&action, arguments] { action = [arguments] { return report_command(*arguments); }; });
}

}  // namespace

void add_judge(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JudgeArguments>();
  CLI::App* command =
      app.add_subcommand("judge", "judge the calls that an engine recorded (docs/traces.md)");
  add_value(*command, "TRACE", "TRACE", arguments->path,
            "folder of a recording, or one of its files")
      ->required();
  begin_group(*command, "What is judged");
  add_value(*command, "--against", "TRACE", arguments->against,
            "compare calls and rows that read the same bits in both traces, bit for bit");
  auto seconds = std::make_shared<double>(0);
  CLI::Option* const follow =
      add_value(*command, "--follow", "[SECONDS]", *seconds,
                "judge while the engine records, until it ends, or until SECONDS pass without a "
                "new step")
          ->check(CLI::Range(0.0, 1e6))
          ->expected(0, 1);
  add_value(*command, "--rows", "N", arguments->rows,
            "judge at most N rows of a call, 0 for all (default: all if that takes less than half "
            "a second, else a sample)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  add_own_ops(*command, arguments->own_ops);
  add_repeatable(*command, "--profile", "FILE", arguments->profiles,
                 "file or folder with the promises of an engine's kernels (docs/traces.md)");
  add_jobs(*command, arguments->jobs, "calls that are judged at a time (default: cores)");
  add_call_files(*command, *arguments);
  begin_group(*command, "Reports");
  add_json(*command, arguments->json);
  add_value(*command, "--junit", "FILE", arguments->junit, "JUnit report");
  add_value(*command, "--html", "FILE", arguments->html, "report as a page (docs/report.md)");
  command->callback([&action, arguments, follow, seconds] {
    if (follow->count() > 0) arguments->follow = *seconds;
    action = [arguments] { return judge_command(*arguments); };
  });
}

void add_report_commands(CLI::App& app, Action& action) {
  add_report(app, action);
  add_merge(app, action);
}

}  // namespace plumb::tools
