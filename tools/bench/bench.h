// SPDX-License-Identifier: Apache-2.0
//
// Measurements of plumb bench and their reports. These are times and ratios of times. They depend
// on the machine and its load, so no test passes or fails by them.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/selection.h"

namespace plumb::tools {

inline constexpr std::string_view kBenchPlatform = "sim-sm90";  // platform of simulator benchmarks

// Range that a value should be in. The default range has no limits.
struct Target {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool met(double value) const { return value >= least && value <= most; }
};

// A number that a measurement is computed from, for the JSON.
struct Part {
  std::string name;
  double value = 0;
  std::string unit;
};

struct Measurement {
  std::string name;
  double value = 0;
  double spread =
      0;  // half the distance between the quartiles of the repetitions, divided by their median
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

// Options of the benchmark "tiers", which runs each tier once. Patterns, if given, select cases.
struct TierBenchOptions {
  std::vector<std::string> tiers{"smoke", "default"};
  std::vector<std::string> patterns;
};
// Throws UsageError if a case of a tier does not pass.
std::vector<Measurement> bench_tiers(const TierBenchOptions& options);

Selected smoke_cases(std::string_view platform);

// CPU time of this process so far. Unlike wall-clock time it does not advance while other programs
// use the core.
double cpu_seconds();

struct Summary {
  double median = 0, spread = 0;
};
Summary summarize(std::vector<double> values);

// Runs the tasks alternately (A B A B ...) after one warm-up round, so that a slower machine slows
// all of them. Returns seconds of CPU time, [task][repetition].
std::vector<std::vector<double>> interleave(const std::vector<std::function<void()>>& tasks,
                                            int repetitions);

std::string bench_text(const Benchmark& benchmark, const std::vector<Measurement>& measured);
std::string bench_json(const std::vector<std::pair<Benchmark, std::vector<Measurement>>>& measured,
                       double load);

}  // namespace plumb::tools
