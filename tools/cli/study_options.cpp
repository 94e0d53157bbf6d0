// SPDX-License-Identifier: Apache-2.0
//
// Options of the commands that compare, plant faults and measure.
#include <memory>

#include "tools/cli/command_options.h"
#include "tools/commands.h"

namespace plumb::tools {

namespace {

void add_agreement(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<AgreementArguments>();
  CLI::App* command = app.add_subcommand(
      "agreement", "count equal bits of two platforms or two plug-ins, op by op");
  add_case_selection(*command, arguments->selection);
  add_repeatable(*command, "--plugin", "FILE", arguments->plugins,
                 "twice: base and change; once: the change, against plumb's kernels")
      ->check(check_named);
  add_json(*command, arguments->json);
  command->callback(
      [&action, arguments] { action = [arguments] { return agreement_command(*arguments); }; });
}

void add_invariance(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<InvarianceArguments>();
  CLI::App* command =
      app.add_subcommand("invariance", "report whether a row's bits depend on its batch");
  add_case_selection(*command, arguments->selection);
  add_plugin(*command, arguments->selection.plugin);
  add_value(*command, "--sizes", "LIST", arguments->sizes,
            "batch sizes, as 1,2,16 (default: the captured sizes)");
  add_json(*command, arguments->json);
  command->callback(
      [&action, arguments] { action = [arguments] { return invariance_command(*arguments); }; });
}

void add_clean_steps(CLI::App& command, FaultsArguments& arguments) {
  begin_group(command, "Steps without a fault");
  add_value(command, "--clean", "STEPS", arguments.clean_steps,
            "plant nothing: take so many random steps, none of which may raise an alarm")
      ->check(CLI::Range(1, 1000000));
  add_value(command, "--geometry", "small|production", arguments.geometry,
            "size of the model; production needs a real device (512 requests)")
      ->check(CLI::IsMember({"small", "production"}));
  add_value(command, "--plugin", "FILE", arguments.plugin,
            "library or Python file whose kernels replace plumb's")
      ->check(check_named);
}

void add_faults(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<FaultsArguments>();
  CLI::App* command =
      app.add_subcommand("faults",
                         "plant known faults in a decode step, and require that each "
                         "is found");
  begin_group(*command, "Faults");
  add_names(*command, "--platform", "NAME", arguments->platforms,
            "where to run (default: sim-sm90, sim-gfx942)");
  add_names(*command, "--fault", "PATTERN", arguments->patterns,
            "name of a fault; * and ? as in a shell (default: all)");
  add_value(*command, "--shard", "I/N", arguments->shard,
            "run one of N shares with equal numbers of faults");
  add_value(*command, "--seed", "N", arguments->seed_text, "other schedules");
  add_jobs(*command, arguments->jobs, "faults that run at a time (default: cores)");
  add_json(*command, arguments->json);
  command->add_flag("--quiet,-q", arguments->quiet, "print missed faults and the shares only");
  add_clean_steps(*command, *arguments);
  command->callback(
      [&action, arguments] { action = [arguments] { return faults_command(*arguments); }; });
}

void add_bench(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command =
      app.add_subcommand("bench", "measure plumb, or kernels on a device, as ratios");
  add_value(*command, "--only", "NAME ...", arguments->only,
            "reference, ops, simulator, cases, cost, watch or tiers (default: all but tiers); with "
            "--platform: ops")
      ->take_all();
  add_value(*command, "--tier", "TIER ...", arguments->tiers,
            "for tiers: which (default: smoke and default)")
      ->take_all();
  add_value(*command, "--case", "PATTERN ...", arguments->patterns,
            "for tiers and --plugin: only these cases")
      ->take_all();
  add_value(*command, "--platform", "NAME", arguments->platform,
            "a real device: kernels at production size, as shares of their floors");
  add_repeatable(*command, "--plugin", "FILE", arguments->plugins,
                 "once: time these kernels and plumb's; twice: the first and the second")
      ->check(check_named);
  add_value(*command, "--torch-topk", "FILE", arguments->torch_topk,
            "output of tools/bench/torch_topk.py on the same machine");
  add_json(*command, arguments->json);
  command->callback(
      [&action, arguments] { action = [arguments] { return bench_command(*arguments); }; });
}

}  // namespace

void add_study_commands(CLI::App& app, Action& action) {
  add_agreement(app, action);
  add_invariance(app, action);
  add_faults(app, action);
  add_bench(app, action);
}

}  // namespace plumb::tools
