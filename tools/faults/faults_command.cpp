// SPDX-License-Identifier: Apache-2.0
//
// plumb faults: decode steps with planted faults, each of which must be found, and steps without a
// fault, on which no detector (check of a decode step) may raise an alarm.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "cases/tables/case_file.h"
#include "device/device.h"
#include "process/own_program.h"
#include "process/worker.h"
#include "reference/bound.h"
#include "tools/commands.h"
#include "tools/faults/fault_runner.h"
#include "tools/faults/faults_report.h"
#include "tools/output.h"
#include "tools/plugin.h"
#include "tools/selection.h"
#include "tools/shard.h"

namespace plumb::tools {

namespace {

using cases::DecodeFault;
using cases::DecodeRun;
using cases::FinishedRun;

std::vector<std::string> platforms_of(const FaultsArguments& arguments) {
  std::vector<std::string> platforms = {"sim-sm90", "sim-gfx942"};
  if (!arguments.platforms.empty()) platforms = choose_platforms(arguments.platforms);
  for (const std::string& platform : platforms) {
    const std::string why = device::why_unavailable(platform);
    if (!why.empty()) throw NotInThisBuild(fmt::format("{}: {}", platform, why));
  }
  return platforms;
}

std::vector<const DecodeFault*> faults_of(const std::vector<std::string>& patterns) {
  std::vector<const DecodeFault*> chosen;
  std::vector<std::string> names;
  std::vector<bool> used(patterns.size(), false);
  for (const auto* faults : {&cases::all_decode_faults(), &cases::faults_within_numerics()}) {
    for (const DecodeFault& fault : *faults) {
      bool wanted = patterns.empty();
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        if (!cases::matches(patterns[i], fault.name)) continue;
        wanted = used[i] = true;
      }
      if (wanted) chosen.push_back(&fault);
      names.push_back(fault.name);
    }
  }
  const auto unused = std::find(used.begin(), used.end(), false);
  if (unused == used.end()) return chosen;
  const std::string& pattern = patterns[static_cast<std::size_t>(unused - used.begin())];
  const std::string nearest = cases::nearest_name(pattern, names);
  throw NotInThisBuild(
      fmt::format("no fault matches \"{}\"{}", pattern,
                  nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

std::vector<const DecodeFault*> in_shard(const std::string& text,
                                         const std::vector<const DecodeFault*>& faults) {
  if (text.empty()) return faults;
  std::vector<const DecodeFault*> chosen;
  for (const std::size_t number :
       numbers_in(shard_of(text), std::vector<double>(faults.size(), 1))) {
    chosen.push_back(faults[number]);
  }
  if (chosen.empty()) throw UsageError(fmt::format("--shard {} contains none of the faults", text));
  return chosen;
}

void check_production(const FaultsArguments& arguments, const std::vector<std::string>& platforms) {
  if (arguments.clean_steps == 0) throw UsageError("--geometry production is for --clean");
  for (const std::string& platform : platforms) {
    if (!is_real(platform)) {
      throw UsageError("--geometry production is for real devices, not for " + platform);
    }
  }
}

// Reports an unusable library before the first step.
void require_plugin(const std::string& path) {
  constexpr double kPluginTimeout = 60;  // in seconds
  probe_plugin(path, kPluginTimeout);
}

std::vector<DecodeRun> runs_of(const FaultsArguments& arguments) {
  if (!arguments.plugin.empty() && arguments.clean_steps == 0) {
    throw UsageError("--plugin is for --clean: faults are planted in plumb's own kernels");
  }
  const std::vector<std::string> platforms = platforms_of(arguments);
  const std::uint64_t seed = parse_seed(arguments.seed_text);
  const bool production = arguments.geometry == "production";
  if (production) check_production(arguments, platforms);
  if (arguments.clean_steps > 0) {
    if (!arguments.patterns.empty()) throw UsageError("--clean plants no fault: leave out --fault");
    if (!arguments.shard.empty()) throw UsageError("--clean plants no fault: leave out --shard");
    if (production) return cases::production_runs(platforms, arguments.clean_steps, seed);
    return cases::random_runs(platforms, arguments.clean_steps, seed);
  }
  const auto faults = in_shard(arguments.shard, faults_of(arguments.patterns));
  std::vector<DecodeRun> runs = fault_runs(platforms, faults, seed);
  std::vector<DecodeRun> elsewhere = cases::elsewhere_runs(platforms, faults, seed);
  std::move(elsewhere.begin(), elsewhere.end(), std::back_inserter(runs));
  std::vector<DecodeRun> clean = control_runs(platforms, faults, seed);
  // A single fault is asked for to get a quick answer, so other traffic is not run.
  if (arguments.patterns.empty()) {
    std::vector<DecodeRun> more = cases::traffic_runs(platforms, seed);
    std::move(more.begin(), more.end(), std::back_inserter(clean));
  }
  std::move(clean.begin(), clean.end(), std::back_inserter(runs));
  return runs;
}

// Prints results line by line, as they come.
class Printer {
 public:
  explicit Printer(bool quiet) : quiet_(quiet) {}

  void operator()(const FinishedRun& one) {
    if (one.run.elsewhere) {
      print_elsewhere(one);
    } else if (one.run.fault != nullptr) {
      print_fault(one);
    } else {
      put(alarm_text(one, style_));
    }
    std::fflush(stdout);
  }

 private:
  void print_fault(const FinishedRun& one) {
    const bool expected = one.run.fault->within_numerics
                              ? one.is_within_numerics()
                              : one.found() && one.blamed() && !one.tempted();
    if (quiet_ && (one.skipped() || expected)) return;
    if (platform_ != one.run.setup.platform) {
      if (platform_.empty()) put(fault_matrix_legend());
      platform_ = one.run.setup.platform;
      put(fault_matrix_head(platform_, style_));
    }
    put(fault_text(one, style_));
  }

  void print_elsewhere(const FinishedRun& one) {
    if (one.skipped() || (quiet_ && one.diagnosis.names(one.run.fault->name))) return;
    if (!std::exchange(elsewhere_, true)) put(elsewhere_head(style_));
    put(elsewhere_text(one, style_));
  }

  bool quiet_, elsewhere_ = false;
  const Style style_ = style_of(STDOUT_FILENO);
  std::string platform_;  // platform of the matrix printed last
};

// Runs at a time. A real device shares its memory and its time between them.
int jobs_of(const FaultsArguments& arguments, const std::vector<DecodeRun>& runs, int cores) {
  constexpr int kMostOnADevice = 8;
  if (arguments.jobs > 0) return arguments.jobs;
  const auto real = [](const DecodeRun& run) { return is_real(run.setup.platform); };
  const auto large = [](const DecodeRun& run) { return run.setup.sample > 0; };
  if (std::any_of(runs.begin(), runs.end(), large)) return 1;
  return std::any_of(runs.begin(), runs.end(), real) ? std::min(cores, kMostOnADevice) : cores;
}

}  // namespace

int faults_command(const FaultsArguments& arguments) {
  const std::vector<DecodeRun> runs = runs_of(arguments);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int jobs = jobs_of(arguments, runs, cores);
  reference::set_thread_count(std::max(1, cores / jobs));
  if (process::is_worker()) return serve_watches(runs, arguments.plugin);
  if (!arguments.json.empty()) check_writable(arguments.json);
  if (!arguments.plugin.empty()) require_plugin(arguments.plugin);
  const auto all = run_all(runs, process::own_command_line(), jobs, Printer(arguments.quiet));
  const cases::Shares shares = shares_of(all);
  put(shares_text(shares, style_of(STDOUT_FILENO)));
  if (!arguments.json.empty()) write_file(arguments.json, to_json(all));
  return exit_code(shares);
}

}  // namespace plumb::tools
