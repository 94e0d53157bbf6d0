// SPDX-License-Identifier: Apache-2.0
//
// Options of the commands that run, list and show cases.
#include <memory>

#include "tools/cli/command_options.h"
#include "tools/commands.h"

namespace plumb::tools {

std::string check_named(const std::string& path) { return path.empty() ? "names no file" : ""; }

void add_plugin(CLI::App& command, std::string& plugin) {
  add_value(command, "--plugin", "FILE", plugin,
            "library or Python file with the kernels to judge (docs/plugins.md)")
      ->check(check_named);
}

void add_own_ops(CLI::App& command, std::vector<std::string>& own_ops) {
  add_repeatable(command, "--ops", "FILE.py", own_ops,
                 "Python file that declares ops (docs/own_op.md)");
}

void add_jobs(CLI::App& command, int& jobs, const char* meaning) {
  add_value(command, "--jobs,-j", "N", jobs, meaning)->check(CLI::Range(1, 256));
}

void add_json(CLI::App& command, std::string& path) {
  add_value(command, "--json", "FILE", path, "write a JSON report");
}

void add_case_selection(CLI::App& command, Selection& selection) {
  add_names(command, "--case", "PATTERN", selection.patterns,
            "op, op/row or op/row/scenario; * and ? as in a shell");
  add_names(command, "--op", "OP", selection.ops, "all cases of these ops");
  add_names(command, "--platform", "NAME", selection.platforms,
            "where to run (default: every simulated platform; see plumb list --platforms)");
  add_value(command, "--tier", "TIER", selection.tier,
            "smoke (seconds), default (minutes) or full (hours)");
  add_repeatable(command, "--set", "NAME=VALUE", selection.settings,
                 "change a parameter of every selected row");
  add_repeatable(command, "--cases", "FILE", selection.case_files,
                 "TOML file or recorded row; its rows replace those of its op");
}

namespace {

void add_selection(CLI::App& command, Selection& selection) {
  add_case_selection(command, selection);
  add_plugin(command, selection.plugin);
}

void add_kinds_of_run(CLI::App& command, RunArguments& arguments) {
  begin_group(command, "Which of them");
  CLI::Option* const most = add_value(command, "--maxfail", "N", arguments.most_failures,
                                      "end the run after N failed cases")
                                ->check(CLI::Range(1, 1000000));
  command
      .add_flag_callback(
          "-x", [&arguments] { arguments.most_failures = 1; }, "end at the first failed case")
      ->excludes(most);
  command.add_flag("--last-failed", arguments.last_failed,
                   "run only the cases that failed in the report of --json");
  command.add_flag("--resume", arguments.resume,
                   "continue the interrupted run of the report of --json");
  add_value(command, "--shard", "I/N", arguments.shard,
            "run one of N shares of equal cost; plumb merge joins their reports");
}

void add_reports(CLI::App& command, RunArguments& arguments) {
  begin_group(command, "Reports");
  add_value(command, "--json", "FILE", arguments.json, "JSON report; \"\" writes none")
      ->capture_default_str();
  add_value(command, "--junit", "FILE", arguments.junit, "JUnit report");
  add_value(command, "--html", "FILE", arguments.html, "report as a page (docs/report.md)");
  add_value(command, "--dump", "FOLDER", arguments.dump,
            "write the tensors of failed cases as .npy (docs/judging.md)");
  command.add_flag("--quiet,-q", arguments.quiet, "print failures and the summary only");
}

void add_conditions(CLI::App& command, RunArguments& arguments) {
  begin_group(command, "How cases run");
  add_value(command, "--seed", "N", arguments.seed_text, "other inputs, equal on every platform");
  add_jobs(command, arguments.jobs,
           "cases that run at a time (default: cores; at most 8 on a real device)");
  add_value(command, "--devices", "LIST", arguments.devices,
            "GPUs that workers are spread over: all, or numbers as 0,3");
  add_value(command, "--timeout", "SECONDS", arguments.timeout,
            "time limit of one case; 0 for none")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  add_value(command, "--point", "WORDS", arguments.selection.point,
            "one combination of conditions, as fill=real,poison=nan (docs/bisect.md)");
  command.add_flag("--in-process", arguments.in_process,
                   "run cases in this process, for a debugger");
  command.add_flag("!--no-diagnosis", arguments.diagnose,
                   "skip the search for a known defect behind each failure (seconds)");
}

void add_checks(CLI::App& command, RunArguments& arguments) {
  begin_group(command, "Checks of the run");
  add_value(command, "--goldens", "FOLDER", arguments.goldens,
            "stored results; \"\" compares with none (default: plumb's own)");
  add_value(command, "--least-coverage", "N", arguments.least_coverage,
            "fail if an op, scenario and platform has fewer than N comparing cases (concurrent, "
            "queued: 1)")
      ->check(CLI::Range(0, 1000000));
  add_repeatable(command, "--expect-kernel", "PATTERN", arguments.selection.kernels,
                 "fail if a captured graph has no kernel of such a name; * and ?")
      ->check([](const std::string& pattern) { return pattern.empty() ? "no pattern" : ""; });
  command.add_flag("--bisect", arguments.bisect,
                   "exit codes of git bisect run: 0 good, 1 bad, 125 no verdict");
}

void add_run(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run cases and judge the results");
  auto named = std::make_shared<std::vector<std::string>>();
  add_value(*command, "CASE", "PATTERN", *named, "the same as --case")->delimiter(',');
  begin_group(*command, "Cases and kernels");
  add_selection(*command, arguments->selection);
  add_own_ops(*command, arguments->selection.own_ops);
  add_kinds_of_run(*command, *arguments);
  add_reports(*command, *arguments);
  add_conditions(*command, *arguments);
  add_checks(*command, *arguments);
  command->callback([&action, arguments, named] {
    std::vector<std::string>& patterns = arguments->selection.patterns;
    patterns.insert(patterns.end(), named->begin(), named->end());
    action = [arguments] { return run_command(*arguments); };
  });
}

void add_list(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = app.add_subcommand("list", "list cases, ops, platforms, scenarios or faults");
  begin_group(*command, "Instead of cases");
  CLI::Option* const ops =
      add_value(*command, "--ops", "[FILE.py]", arguments->selection.own_ops,
                "the ops; with FILE.py: the cases, including those of the ops that it declares")
          ->expected(0, 1);
  command->add_flag("--platforms", arguments->platforms,
                    "the platforms, and why some cannot be used here");
  command->add_flag("--scenarios", arguments->scenarios, "the scenarios");
  command->add_flag("--faults", arguments->faults,
                    "the faults of decode steps (plumb faults --fault, plumb run --set fault=...)");
  command->add_flag("--arguments", arguments->arguments, "arguments of each op, as Markdown");
  command->add_flag("--contracts", arguments->contracts,
                    "choices of each op, and the cases that distinguish their values, as Markdown");
  begin_group(*command, "Which cases");
  add_selection(*command, arguments->selection);
  command->add_flag("--why", arguments->why, "print the reason of each case's row");
  command->callback([&action, arguments, ops] {
    std::erase(arguments->selection.own_ops, "");  // "" stands for --ops without a file
    arguments->ops = ops->count() > 0 && arguments->selection.own_ops.empty();
    action = [arguments] { return list_command(*arguments); };
  });
}

void add_show(CLI::App& app, Action& action) {
  auto selection = std::make_shared<Selection>();
  CLI::App* command =
      app.add_subcommand("show", "tensors, numerics, conditions and margins of one case");
  add_value(*command, "CASE", "CASE", selection->patterns, "op/row/scenario")
      ->required()
      ->expected(1);
  add_value(*command, "--platform", "NAME", selection->platforms,
            "where to run (default: sim-sm90)")
      ->expected(1);
  add_value(*command, "--tier", "TIER", selection->tier, "smoke, default or full");
  add_plugin(*command, selection->plugin);
  add_own_ops(*command, selection->own_ops);
  add_repeatable(*command, "--set", "NAME=VALUE", selection->settings,
                 "change a parameter of the row");
  add_repeatable(*command, "--cases", "FILE", selection->case_files,
                 "TOML file or recorded row; its rows replace those of its op");
  command->callback(
      [&action, selection] { action = [selection] { return show_command(*selection); }; });
}

}  // namespace

void add_case_commands(CLI::App& app, Action& action) {
  add_run(app, action);
  add_list(app, action);
  add_show(app, action);
}

}  // namespace plumb::tools
