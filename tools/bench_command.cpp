// SPDX-License-Identifier: Apache-2.0
//
// plumb bench: ratios measured in one run. Never part of a test: these are times.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "cases/case_file.h"
#include "reference/bound.h"
#include "tools/bench.h"
#include "tools/commands.h"
#include "tools/report.h"

namespace plumb::tools {

namespace {

struct BenchArguments {
  std::vector<std::string> only;
  std::string json;
};

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
  };
  return benchmarks;
}

std::vector<Benchmark> chosen(const std::vector<std::string>& only) {
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
  return only.empty() ? all_benchmarks() : benchmarks;
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

int bench(const BenchArguments& arguments) {
  const std::vector<Benchmark> benchmarks = chosen(arguments.only);
  const double load = load_average();
  fmt::print("medians of repetitions in turn, in processor time; load average {:.1f} on {} cores\n",
             load, std::thread::hardware_concurrency());
  reference::set_thread_count(1);
  std::vector<std::pair<Benchmark, std::vector<Measurement>>> measured;
  for (const Benchmark& benchmark : benchmarks) {
    measured.emplace_back(benchmark, benchmark.measure());
    fmt::print("\n{}", bench_text(benchmark, measured.back().second));
    std::fflush(stdout);
  }
  if (!arguments.json.empty()) write_file(arguments.json, bench_json(measured, load));
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand("bench", "what plumb itself costs, as ratios");
  command
      ->add_option("--only", arguments->only,
                   "reference, ops, simulator, cases, cost; default: all")
      ->take_all();
  command->add_option("--json", arguments->json, "report for machines");
  command->callback([&action, arguments] { action = [arguments] { return bench(*arguments); }; });
}

}  // namespace plumb::tools
