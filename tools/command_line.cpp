// SPDX-License-Identifier: Apache-2.0
//
// Knows CLI11, whose classes take a compiler seconds to read, as bisect/bisect_options.cpp and
// golden/golden_options.cpp alone do.
#include "tools/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>

#include "cases/tables/case_file.h"
#include "tools/command_options.h"
#include "tools/commands.h"
#include "tools/output.h"

namespace plumb::tools {

namespace {

std::string check_plugin(const std::string& path) { return path.empty() ? "names no file" : ""; }

void add_plugin(CLI::App& command, Selection& selection) {
  command
      .add_option("--plugin", selection.plugin,
                  "library or Python file with the kernels to judge (docs/plugins.md)")
      ->check(check_plugin);
}

void add_own_ops(CLI::App& command, Selection& selection) {
  add_repeatable(command, "--ops", selection.own_ops,
                 "Python file that declares ops of its own (docs/own_op.md)");
}

// All but --plugin.
void add_case_selection(CLI::App& command, Selection& selection) {
  add_repeatable(command, "--case", selection.patterns,
                 "op, op/row, op/row/scenario; * and ? as in a shell; several with commas")
      ->delimiter(',');
  add_repeatable(command, "--op", selection.ops, "only this op");
  add_repeatable(command, "--platform", selection.platforms, "default: every simulated one");
  command.add_option("--tier", selection.tier, "smoke, default or full");
  add_repeatable(command, "--set", selection.settings, "name=value on every selected row");
  add_repeatable(command, "--cases", selection.case_files,
                 "TOML file, or recorded row, whose rows replace an op's");
}

void add_selection(CLI::App& command, Selection& selection) {
  add_case_selection(command, selection);
  add_plugin(command, selection);
}

void add_run(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run cases and judge them");
  auto named = std::make_shared<std::vector<std::string>>();
  command->add_option("CASE", *named, "as --case")->delimiter(',');
  add_selection(*command, arguments->selection);
  add_own_ops(*command, arguments->selection);
  command->add_option("--seed", arguments->seed_text, "other inputs, the same on every platform");
  command
      ->add_option("--jobs,-j", arguments->jobs,
                   "cases side by side; default: cores, on a real device up to 8")
      ->check(CLI::Range(1, 256));
  command->add_option("--json", arguments->json, "report for machines; \"\" writes none")
      ->capture_default_str();
  command->add_option("--junit", arguments->junit, "JUnit report");
  command->add_option("--html", arguments->html, "report as a page (docs/report.md)");
  command->add_option("--dump", arguments->dump,
                      "folder for the tensors of failed cases, as .npy (docs/judging.md)");
  command->add_option("--goldens", arguments->goldens,
                      "folder of goldens, \"\" for none; default: the repository's own");
  command
      ->add_option("--least-coverage", arguments->least_coverage,
                   "fail if an op, scenario and platform has fewer comparing cases")
      ->check(CLI::Range(0, 1000000));
  command
      ->add_option("--timeout", arguments->timeout, "seconds that one case may take; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  command->add_flag("--in-process", arguments->in_process,
                    "no process of its own for the cases, for a debugger");
  command->add_flag("!--no-diagnosis", arguments->diagnose,
                    "do not look for what a failure looks like, which takes seconds");
  command->add_flag("--bisect", arguments->bisect, "exit codes for git bisect run");
  command->add_flag("--quiet,-q", arguments->quiet, "no line per op, no coverage table");
  add_repeatable(*command, "--expect-kernel", arguments->selection.kernels,
                 "each captured graph has to contain a kernel of such a name; * and ?")
      ->check([](const std::string& pattern) { return pattern.empty() ? "no pattern" : ""; });
  command->add_option("--point", arguments->selection.point,
                      "one point: plain, or some of fill=, poison=, order=, ... (docs/bisect.md)");
  CLI::Option* const most =
      command->add_option("--maxfail", arguments->most_failures, "end after so many failed cases")
          ->check(CLI::Range(1, 1000000));
  command
      ->add_flag_callback(
          "-x", [arguments] { arguments->most_failures = 1; }, "the same as --maxfail 1")
      ->excludes(most);
  command->add_flag("--last-failed", arguments->last_failed,
                    "only cases that failed in the report that --json names");
  command->add_flag("--resume", arguments->resume,
                    "go on with the interrupted run whose report --json names");
  command->add_option("--shard", arguments->shard,
                      "I/N: one of N shares of equal cost, for plumb merge");
  command->add_option("--devices", arguments->devices,
                      "all, or numbers as 0,3: the GPUs that workers are spread over");
  command->callback([&action, arguments, named] {
    std::vector<std::string>& patterns = arguments->selection.patterns;
    patterns.insert(patterns.end(), named->begin(), named->end());
    action = [arguments] { return run_command(*arguments); };
  });
}

void add_merge(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command = app.add_subcommand("merge", "the reports of all shards of a run as one");
  command->add_option("REPORT", arguments->reports, "report of one shard, or of another platform")
      ->required();
  command->add_option("--output,-o", arguments->json, "the report of the run")
      ->capture_default_str();
  command->add_option("--junit", arguments->junit, "JUnit report");
  command->add_flag("--quiet,-q", arguments->quiet, "no coverage table");
  command->callback(
      [&action, arguments] { action = [arguments] { return merge_command(*arguments); }; });
}

void add_list(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = app.add_subcommand("list", "list cases, ops, platforms or scenarios");
  add_selection(*command, arguments->selection);
  CLI::Option* const ops =
      command
          ->add_option("--ops", arguments->selection.own_ops,
                       "the ops; with FILE.py: the cases, with those of ops that it declares")
          ->expected(0, 1);
  command->add_flag("--arguments", arguments->arguments, "what each op takes, as Markdown");
  command->add_flag("--contracts", arguments->contracts,
                    "which case tells values of an op's choices apart, as Markdown");
  command->add_flag("--platforms", arguments->platforms,
                    "the platforms, and why some are unavailable");
  command->add_flag("--scenarios", arguments->scenarios, "the scenarios");
  command->add_flag("--why", arguments->why, "each case with the reason for its row");
  command->callback([&action, arguments, ops] {
    std::erase(arguments->selection.own_ops, "");  // what --ops alone sets
    arguments->ops = ops->count() > 0 && arguments->selection.own_ops.empty();
    action = [arguments] { return list_command(*arguments); };
  });
}

void add_show(CLI::App& app, Action& action) {
  auto selection = std::make_shared<Selection>();
  CLI::App* command = app.add_subcommand("show", "everything about one case");
  command->add_option("CASE", selection->patterns, "op/row/scenario")->required()->expected(1);
  add_repeatable(*command, "--platform", selection->platforms, "default: sim-sm90");
  command->add_option("--tier", selection->tier, "smoke, default or full");
  add_plugin(*command, *selection);
  add_own_ops(*command, *selection);
  add_repeatable(*command, "--set", selection->settings, "name=value");
  add_repeatable(*command, "--cases", selection->case_files,
                 "TOML file, or recorded row, whose rows replace an op's");
  command->callback(
      [&action, selection] { action = [selection] { return show_command(*selection); }; });
}

void add_bench(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command =
      app.add_subcommand("bench", "what plumb itself costs, or kernels on a device, as ratios");
  command
      ->add_option("--only", arguments->only,
                   "reference, ops, simulator, cases, cost, watch, tiers; with --platform: ops; "
                   "default: all but tiers")
      ->take_all();
  command->add_option("--tier", arguments->tiers, "for tiers: which; default: smoke and default")
      ->take_all();
  command->add_option("--case", arguments->patterns, "for tiers and --plugin: only these cases")
      ->take_all();
  command->add_option("--platform", arguments->platform,
                      "a real device: its kernels at production size, as shares of their floors");
  add_repeatable(*command, "--plugin", arguments->plugins,
                 "kernels to time beside plumb's own; twice: the second beside the first")
      ->check(check_plugin);
  command->add_option("--torch-topk", arguments->torch_topk,
                      "what tools/bench/torch_topk.py printed on the same machine");
  command->add_option("--json", arguments->json, "report for machines");
  command->callback(
      [&action, arguments] { action = [arguments] { return bench_command(*arguments); }; });
}

void add_agreement(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<AgreementArguments>();
  CLI::App* command =
      app.add_subcommand("agreement", "how many bits two platforms or plug-ins share, op by op");
  add_case_selection(*command, arguments->selection);
  add_repeatable(*command, "--plugin", arguments->plugins,
                 "twice: the base and the change; once: the change, against plumb's own kernels")
      ->check(check_plugin);
  command->add_option("--json", arguments->json, "report for machines");
  command->callback(
      [&action, arguments] { action = [arguments] { return agreement_command(*arguments); }; });
}

void add_judge(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JudgeArguments>();
  CLI::App* command =
      app.add_subcommand("judge", "the calls that an engine made, out of a trace (docs/traces.md)");
  command->add_option("TRACE", arguments->path, "folder of a recording, or one of its files")
      ->required();
  command->add_option("--call", arguments->call, "only this call: RANK/STEP/NUMBER");
  command->add_option("--against", arguments->against,
                      "another trace: compare equal calls and rows of both, bit for bit");
  auto seconds = std::make_shared<double>(0);
  CLI::Option* const follow =
      command
          ->add_option("--follow", *seconds,
                       "judge while the engine records; end when it has finished, on Ctrl-C, or "
                       "after SECONDS without a new step")
          ->check(CLI::Range(0.0, 1e6))
          ->type_name("SECONDS")
          ->expected(0, 1);
  add_repeatable(*command, "--ops", arguments->own_ops,
                 "Python file that declares ops of its own (docs/own_op.md)");
  add_repeatable(*command, "--profile", arguments->profiles,
                 "file or folder of profiles: what an engine's kernels promise (docs/traces.md)");
  command
      ->add_option("--repro", arguments->repro,
                   "write the first wrong call as a file of Python that needs torch alone")
      ->check(check_plugin);
  CLI::Option* const extract =
      command
          ->add_option("--extract", arguments->extract,
                       "write the call RANK/STEP/NUMBER as a row for --cases")
          ->check([](const std::string& call) {
            return std::string(call.empty() ? "a call is RANK/STEP/NUMBER" : "");
          });
  command->add_option("--output", arguments->output, "file of --extract; default: the row's name")
      ->needs(extract);
  command
      ->add_option("--rows", arguments->rows,
                   "rows of a call to judge at most, 0 for all; default: all if that takes less "
                   "than half a second, a sample otherwise")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command->add_option("--jobs,-j", arguments->jobs, "calls side by side; default: cores")
      ->check(CLI::Range(1, 256));
  command->add_option("--json", arguments->json, "report for machines");
  command->add_option("--junit", arguments->junit, "JUnit report");
  command->add_option("--html", arguments->html, "report as a page (docs/report.md)");
  command->callback([&action, arguments, follow, seconds] {
    if (follow->count() > 0) arguments->follow = *seconds;
    action = [arguments] { return judge_command(*arguments); };
  });
}

void add_invariance(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<InvarianceArguments>();
  CLI::App* command = app.add_subcommand(
      "invariance", "whether a row's bits depend on its batch: a report, not a verdict");
  add_selection(*command, arguments->selection);
  command->add_option("--sizes", arguments->sizes, "sizes of the batch; default: captured sizes");
  command->add_option("--json", arguments->json, "report for machines");
  command->callback(
      [&action, arguments] { action = [arguments] { return invariance_command(*arguments); }; });
}

void add_faults(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<FaultsArguments>();
  CLI::App* command = app.add_subcommand(
      "faults", "plant faults in a decode step, and see that each is found and nothing else");
  add_repeatable(*command, "--platform", arguments->platforms, "default: sim-sm90, sim-gfx942");
  add_repeatable(*command, "--fault", arguments->patterns, "a name; * and ? as in a shell");
  command
      ->add_option("--clean", arguments->clean_steps,
                   "no fault: so many random steps, none of which may raise an alarm")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--geometry", arguments->geometry,
                   "with --clean: small, or production on a real device (512 requests)")
      ->check(CLI::IsMember({"small", "production"}));
  command
      ->add_option(
          "--plugin", arguments->plugin,
          "with --clean: library or Python file whose kernels take the place of plumb's own")
      ->check(check_plugin);
  command->add_option("--seed", arguments->seed_text, "other schedules");
  command->add_option("--jobs,-j", arguments->jobs, "faults side by side; default: cores")
      ->check(CLI::Range(1, 256));
  command->add_option("--json", arguments->json, "report for machines");
  command->add_flag("--quiet,-q", arguments->quiet, "only what is wrong, and the shares");
  command->callback(
      [&action, arguments] { action = [arguments] { return faults_command(*arguments); }; });
}

void add_report(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command =
      app.add_subcommand("report", "reports for machines as one page to look at (docs/report.md)");
  command
      ->add_option("REPORT", arguments->reports, "JSON report of plumb run; several: oldest first")
      ->required();
  command->add_option("--output,-o", arguments->output, "HTML file")->required();
  command->callback(
      [&action, arguments] { action = [arguments] { return report_command(*arguments); }; });
}

// Nothing or an unknown word where a subcommand has to stand, also one of a group.
std::string describe(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* group = &app;
  while (!group->get_subcommands().empty()) group = group->get_subcommands().front();
  const std::vector<std::string> left = group->remaining();
  std::vector<std::string> names;
  for (const CLI::App* command : group->get_subcommands(nullptr)) {
    names.push_back(command->get_name());
  }
  if (names.empty()) return error.what();
  const std::string there_are = fmt::format("; there are {}", fmt::join(names, ", "));
  if (left.empty()) return "a command is missing" + there_are;
  const std::string nearest = cases::nearest_name(left.front(), names);
  return fmt::format("unknown command \"{}\"{}", left.front(),
                     nearest.empty() ? there_are : fmt::format(" (did you mean {}?)", nearest));
}

}  // namespace

Action read_command_line(int count, const char* const* arguments) {
  CLI::App app{"plumb checks GPU kernels of DeepSeek-V4 / V3.2 inference against a CPU truth"};
  app.name("plumb");
  app.set_version_flag("--version", PLUMB_VERSION);
  app.require_subcommand(1);
  Action action;
  add_run(app, action);
  add_list(app, action);
  add_show(app, action);
  add_bench(app, action);
  add_agreement(app, action);
  add_invariance(app, action);
  add_judge(app, action);
  add_golden(app, action);
  add_faults(app, action);
  add_merge(app, action);
  add_report(app, action);
  add_bisect(app, action);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw UsageError(describe(app, error));
    std::ostringstream text;  // --help, --version
    app.exit(error, text, text);
    return [text = text.str()] {
      put(text);
      return 0;
    };
  }
  return action;
}

}  // namespace plumb::tools
