// SPDX-License-Identifier: Apache-2.0
//
// plumb bench: ratios of times measured in one run, of plumb itself or of a device's kernels. No
// test uses it, because times depend on the machine.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cases/tables/case_file.h"
#include "reference/bound.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_device.h"
#include "tools/bench/bench_plugin.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/report.h"

namespace plumb::tools {

namespace {

constexpr std::string_view kTiers = "tiers";  // takes minutes, so it runs only with --only

const std::vector<Benchmark>& all_benchmarks() {
  static const std::vector<Benchmark> benchmarks{
      {"reference",
       "sparse MLA at the V4-Pro C4A shape (d 512, 128 main and 1024 extra candidates), as a share "
       "of the speed of Eigen's own double product with the same multiplications; one thread",
       &bench_reference},
      {"ops",
       "each op's reference, values and bounds: what its bytes or its operations need on this "
       "machine, as a share of its time; the rates are measured in turn with it, one thread",
       &bench_ops},
      {"simulator",
       "what a simulated thread costs; blocks of 256 threads, waves of 32 and 64, plain and "
       "checked "
       "kernels",
       &bench_simulator},
      {"cases", "the smoke tier on sim-sm90, one case at a time on one thread", &bench_cases},
      {"cost",
       "device time per unit of Problem::cost, by which tiers are thinned: plain kernels on "
       "sim-sm90, smoke rows; and what checked kernels cost beside them",
       &bench_cost},
      {"watch",
       "a decode step under watch of every detector beside the bare step, small geometry on "
       "sim-sm90: "
       "replay and metadata of four requests",
       &bench_watch},
      {kTiers,
       "processor time of plumb run, workers included, in calibrations: a fixed amount of integer, "
       "double and cache work, measured before and behind each tier",
       nullptr},
  };
  return benchmarks;
}

std::vector<Benchmark> chosen_benchmarks(const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const Benchmark& benchmark : all_benchmarks()) names.emplace_back(benchmark.name);
  std::vector<Benchmark> benchmarks;
  for (const std::string& name : only) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw UsageError(
          fmt::format("unknown benchmark \"{}\"; known: {}", name, fmt::join(names, ", ")));
    }
    benchmarks.push_back(all_benchmarks()[static_cast<std::size_t>(found - names.begin())]);
  }
  if (!only.empty()) return benchmarks;
  for (const Benchmark& benchmark : all_benchmarks())
    if (benchmark.measure != nullptr) benchmarks.push_back(benchmark);
  return benchmarks;
}

std::vector<Measurement> measure(const Benchmark& benchmark, const BenchArguments& arguments) {
  if (benchmark.measure != nullptr) return benchmark.measure();
  TierBenchOptions options;
  if (!arguments.tiers.empty()) options.tiers = arguments.tiers;
  options.patterns = arguments.patterns;
  return bench_tiers(options);
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

std::map<std::string, double> read_milliseconds(const std::string& path) {
  if (path.empty()) return {};
  try {
    return nlohmann::json::parse(read_file(path)).get<std::map<std::string, double>>();
  } catch (const nlohmann::json::exception&) {
    throw UsageError(fmt::format("{}: no JSON object of milliseconds by name", path));
  }
}

// Measures the kernels of a real device. Without one the exit code is 2, as for a run in which
// every case is skipped.
int bench_on_device(const BenchArguments& arguments) {
  const auto known = device::known_platforms();
  if (std::find(known.begin(), known.end(), arguments.platform) == known.end()) {
    throw UsageError(fmt::format("unknown platform \"{}\"; known: {}", arguments.platform,
                                 fmt::join(known, ", ")));
  }
  if (arguments.platform.starts_with("sim-")) {
    throw UsageError(
        fmt::format("--platform {}: simulated, and no measurement of hardware; "
                    "without --platform, bench measures plumb itself",
                    arguments.platform));
  }
  const DeviceBenchOptions options{arguments.platform, arguments.only,
                                   read_milliseconds(arguments.torch_topk)};
  const std::string why = device::why_unavailable(arguments.platform);
  if (!why.empty()) {
    put_format("{}: skipped: {}\n", arguments.platform, why);
    return 2;
  }
  const Benchmark benchmark{arguments.platform,
                            "each op at production size: its floor as a share of its time; events "
                            "around graph replays, inputs rotating through more than the L2",
                            nullptr};
  const auto measured = bench_device(options);
  put_format("{}", bench_text(benchmark, measured));
  if (!arguments.json.empty()) {
    write_file(arguments.json, bench_json({{benchmark, measured}}, load_average()));
  }
  return 0;
}

}  // namespace

int bench_command(const BenchArguments& arguments) {
  if (!arguments.plugins.empty()) return bench_plugin(arguments);
  if (!arguments.platform.empty()) return bench_on_device(arguments);
  if (!arguments.torch_topk.empty()) throw UsageError("--torch-topk goes with --platform");
  const std::vector<Benchmark> benchmarks = chosen_benchmarks(arguments.only);
  if (std::none_of(benchmarks.begin(), benchmarks.end(),
                   [](const Benchmark& one) { return one.name == kTiers; }) &&
      !(arguments.tiers.empty() && arguments.patterns.empty())) {
    throw UsageError("--tier and --case go with --only tiers");
  }
  const double load = load_average();
  put_format("medians of repetitions in turn, in processor time; load average {:.1f} on {} cores\n",
             load, std::thread::hardware_concurrency());
  reference::set_thread_count(1);
  std::vector<std::pair<Benchmark, std::vector<Measurement>>> measured;
  for (const Benchmark& benchmark : benchmarks) {
    measured.emplace_back(benchmark, measure(benchmark, arguments));
    put_format("\n{}", bench_text(benchmark, measured.back().second));
    std::fflush(stdout);
  }
  if (!arguments.json.empty()) write_file(arguments.json, bench_json(measured, load));
  return 0;
}

}  // namespace plumb::tools
