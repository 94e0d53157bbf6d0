// SPDX-License-Identifier: Apache-2.0
//
// What plumb bench measures, and how it says so. These are times and ratios of times: they depend
// on the machine and on what else it does, so nothing ever passes or fails by them.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/selection.h"

namespace plumb::tools {

inline constexpr std::string_view kBenchPlatform = "sim-sm90";  // of what runs on the simulator

// Where a value should lie; by default anywhere.
struct Target {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool met(double value) const { return value >= least && value <= most; }
};

// A number behind a measurement, for the JSON.
struct Part {
  std::string name;
  double value = 0;
  std::string unit;
};

struct Measurement {
  std::string name;
  double value = 0;
  double spread =
      0;  // half the distance between the quartiles of the repetitions, over their median
  std::string unit;  // "" for a ratio
  Target target = {};
  std::string note = {};
  std::vector<Part> parts = {};
};

struct Benchmark {
  std::string_view name, about;
  std::vector<Measurement> (*measure)();
};

std::vector<Measurement> bench_ops();
std::vector<Measurement> bench_reference();
std::vector<Measurement> bench_simulator();
std::vector<Measurement> bench_cases();
std::vector<Measurement> bench_cost();
std::vector<Measurement> bench_watch();

// What one run of each tier costs; of the cases that match a pattern, if there are any.
struct TierBenchOptions {
  std::vector<std::string> tiers{"smoke", "default"};
  std::vector<std::string> patterns;
};
// Throws UsageError for a tier that does not pass.
std::vector<Measurement> bench_tiers(const TierBenchOptions& options);

Selected smoke_cases(std::string_view platform);

// Processor time of this process so far: unlike the clock on the wall, it stands still while other
// programs have the core.
double cpu_seconds();

struct Summary {
  double median = 0, spread = 0;
};
Summary summarize(std::vector<double> values);

// Runs the tasks in turn, A B A B ..., after one round to warm up, so that whatever slows the
// machine down slows all of them. Seconds of processor time, [task][repetition].
std::vector<std::vector<double>> interleave(const std::vector<std::function<void()>>& tasks,
                                            int repetitions);

std::string bench_text(const Benchmark& benchmark, const std::vector<Measurement>& measured);
std::string bench_json(const std::vector<std::pair<Benchmark, std::vector<Measurement>>>& measured,
                       double load);

}  // namespace plumb::tools
