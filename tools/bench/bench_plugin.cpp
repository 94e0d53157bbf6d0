// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/bench_plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "cases/drivers/op_chain.h"
#include "device/remote/connection.h"
#include "process/codec_fields.h"
#include "process/own_program.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_device.h"
#include "tools/bench/timed_launches.h"
#include "tools/output.h"
#include "tools/report.h"

namespace plumb::tools {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimedLaunches, skipped, wrong, seconds)

namespace {

constexpr double kCaseTimeout = 300;  // in seconds

// A timed case, or a row at production size.
struct BenchTask {
  cases::Case which;
  std::string name;
  bool multiplies_matrices = false;
};

// Times of both sides. The change is the plug-in named last.
struct TimedSides {
  TimedLaunches base, change;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimedSides, base, change)

struct TimedTask {
  std::string name;
  TimedSides sides;
  double floor = 0;  // in seconds
};

std::vector<BenchTask> production_tasks(const std::vector<std::string>& only) {
  std::vector<BenchTask> tasks;
  for (const DeviceOp& op : device_ops()) {
    if (!only.empty() && std::ranges::find(only, op.op) == only.end()) continue;
    const cases::OpDefinition& definition = cases::find_op(op.op);
    tasks.push_back({{&definition, cases::ad_hoc_row(definition, op.integers, op.words)},
                     op.name(),
                     op.multiplies_matrices});
    tasks.back().which.scenario = &cases::all_scenarios().front();
  }
  return tasks;
}

std::vector<BenchTask> smoke_tasks(const BenchArguments& arguments, const std::string& platform) {
  Selection selection;
  selection.tier = "smoke";
  selection.patterns = arguments.patterns;
  selection.ops = arguments.only;
  selection.platforms = {platform};
  std::vector<BenchTask> tasks;
  for (const cases::Case& which : select(selection).cases) {
    const bool eager = which.scenario->mode == cases::Scenario::Mode::eager;
    if (eager && which.row.trivial.empty() && !which.row.real_only)
      tasks.push_back({which, which.id()});
  }
  return tasks;
}

// Runs in the worker process.
TimedSides time_both(const BenchTask& task, const std::string& platform,
                     const std::vector<std::string>& plugins) {
  cases::RunOptions own;
  own.platform = platform;
  TimedSides sides;
  const auto time = [&](const cases::RunOptions& options, TimedLaunches& timed) {
    try {
      timed = time_launches(task.which, options);
    } catch (const device::remote::Died& death) {
      end_plugin_processes();
      timed.wrong = fmt::format("crash: {}", death.what());
    }
  };
  time(plugins.size() == 2 ? with_plugin_process(own, plugins.front()) : own, sides.base);
  time(with_plugin_process(own, plugins.back()), sides.change);
  return sides;
}

// Copy rate of the host in bytes per second, reads and writes counted.
double host_copy_rate() {
  constexpr std::size_t kBytes = 64 << 20;
  constexpr int kCopies = 5;
  const std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes);
  double best = 0;
  for (int i = 0; i < kCopies; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * kBytes / spent.count());
  }
  return best;
}

DeviceRates rates_of(const std::string& platform, bool simulated) {
  if (simulated) return {.copy = host_copy_rate()};
  const device::RateKernels* const kernels = device::rate_kernels(platform);
  if (kernels == nullptr)
    throw UsageError(platform + ": there are no kernels to measure its rates");
  std::vector<Measurement> measured;
  return measure_rates(platform, *kernels, measured);
}

double floor_of(const BenchTask& task, const std::string& platform, const DeviceRates& rates) {
  const auto problem =
      task.which.op->make_problem(task.which.row, device::open_device(platform)->properties());
  const double bytes = problem->moved_bytes(problem->make_tensors()) / rates.copy;
  const double rate = task.multiplies_matrices ? rates.matrix : rates.multiply_add;
  if (rate <= 0) return bytes;  // simulated: the floor is that of the bytes
  return std::max(bytes, 2 * problem->reference_work().multiply_adds / rate);
}

std::string text_of(const TimedTask& task, const std::string& base, const std::string& change) {
  const auto& [of_base, of_change] = task.sides;
  std::string text = fmt::format("{:<58}", task.name);
  const auto why_none = [&](const std::string& side, const TimedLaunches& timed) {
    return timed.wrong.empty() ? fmt::format("no figure: {}: {}\n", side, timed.skipped)
                               : fmt::format("no figure: {} is wrong: {}\n", side, timed.wrong);
  };
  if (of_change.seconds.empty()) return text + why_none(change, of_change);
  const Summary time = summarize(of_change.seconds);
  text += fmt::format("{:>12.3f} us  ± {:>3.0f} %{:>10.3f}", 1e6 * time.median, 100 * time.spread,
                      task.floor / time.median);
  if (of_base.seconds.empty()) return text + "  base: " + why_none(base, of_base);
  return text + fmt::format("{:>10.3f}\n", time.median / summarize(of_base.seconds).median);
}

std::string to_json(const std::vector<TimedTask>& tasks, const std::string& platform,
                    bool simulated) {
  nlohmann::ordered_json json{{"platform", platform},
                              {"times_of", simulated ? "host" : "device"},
                              {"cases", nlohmann::ordered_json::array()}};
  const auto side = [](const TimedLaunches& timed) {
    nlohmann::ordered_json one{{"skipped", timed.skipped}, {"wrong", timed.wrong}};
    if (timed.seconds.empty()) return one;
    one["seconds"] = summarize(timed.seconds).median;
    one["spread"] = summarize(timed.seconds).spread;
    return one;
  };
  for (const TimedTask& task : tasks) {
    json["cases"].push_back({{"name", task.name},
                             {"floor_seconds", task.floor},
                             {"base", side(task.sides.base)},
                             {"change", side(task.sides.change)}});
  }
  return json.dump(1) + "\n";
}

int serve_times(const std::vector<BenchTask>& tasks, const std::string& platform,
                const std::vector<std::string>& plugins) {
  return process::serve([&](const process::WorkerRequest& request) {
    return process::encode(time_both(tasks.at(request.task), platform, plugins));
  });
}

TimedSides ask_for_times(process::Worker& worker, std::size_t i, const std::string& name) {
  const auto answer = process::ask<TimedSides>(worker, i, name, nullptr);
  if (const auto* sides = std::get_if<TimedSides>(&answer)) return *sides;
  const auto& death = std::get<process::Death>(answer);
  TimedSides lost;
  lost.change.wrong = fmt::format("{}: {}", death.timed_out ? "timeout" : "crash", death.why);
  return lost;
}

void print_head(const std::string& platform, bool simulated, const std::string& base,
                const std::string& change) {
  put(fmt::format("{} compared with {} on {}; outputs of the timed launches are judged\n", change,
                  base, platform));
  if (simulated) {
    put("times are those of this host, on which the simulator runs: no measurement of hardware; "
        "the floor is what the bytes take at the host's copy rate\n");
  }
  put(fmt::format("{:<58}{:>15}{:>7}{:>10}{:>10}\n", "", "time", "", "floor/time", "time/base"));
}

}  // namespace

int bench_plugin(const BenchArguments& arguments) {
  const std::vector<std::string>& plugins = arguments.plugins;
  if (plugins.size() > 2) throw UsageError("bench times two plug-ins at most");
  const std::string platform =
      arguments.platform.empty() ? std::string(kBenchPlatform) : arguments.platform;
  const std::string unavailable = device::why_unavailable(choose_platforms({platform}).front());
  if (!unavailable.empty()) throw UsageError(platform + ": " + unavailable);
  const bool simulated = platform.starts_with("sim-");
  const std::vector<BenchTask> tasks =
      simulated ? smoke_tasks(arguments, platform) : production_tasks(arguments.only);
  if (process::is_worker()) return serve_times(tasks, platform, plugins);
  if (!arguments.json.empty()) check_writable(arguments.json);
  const PluginInfo change = probe_plugin(plugins.back(), kCaseTimeout);
  const bool two = plugins.size() == 2;
  const std::string base =
      two ? probe_plugin(plugins.front(), kCaseTimeout).text() : "plumb's own kernels";
  print_head(platform, simulated, base, change.text());
  const DeviceRates rates = rates_of(platform, simulated);
  process::Worker worker({.words = process::own_command_line(), .timeout = kCaseTimeout});
  std::vector<TimedTask> timed;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!change.offers(tasks[i].which.op->name)) continue;
    timed.push_back({tasks[i].name, ask_for_times(worker, i, tasks[i].name),
                     floor_of(tasks[i], platform, rates)});
    put(text_of(timed.back(), two ? "the first plug-in" : base, change.name));
  }
  if (!arguments.json.empty()) write_file(arguments.json, to_json(timed, platform, simulated));
  const auto is_wrong = [](const TimedTask& task) { return !task.sides.change.wrong.empty(); };
  const auto has_figure = [](const TimedTask& task) { return !task.sides.change.seconds.empty(); };
  if (timed.empty()) throw UsageError(change.text() + ": has no op of a selected case");
  if (std::ranges::any_of(timed, is_wrong)) return 1;
  return std::ranges::any_of(timed, has_figure) ? 0 : 2;
}

}  // namespace plumb::tools
