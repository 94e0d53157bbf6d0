// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of whole tiers, so that growth is seen: CPU time of `plumb run` and its
// workers, in units of a fixed amount of work that is measured in the same run.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "tools/bench/bench.h"

extern char** environ;

namespace plumb::tools {

namespace {

// One unit of work: integer hashing, a chain of double arithmetic, and loads from a table larger
// than the inner caches. It takes half a second on a machine of 2023.
std::uint64_t calibration_work() {
  constexpr std::size_t kTable = std::size_t{1} << 16;
  constexpr int kRounds = 50'000'000;
  static std::vector<double> table(kTable, 1.0);
  std::uint64_t bits = 1;
  double sum = 1;
  for (int round = 0; round < kRounds; ++round) {
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U + 0x9E3779B97F4A7C15U;
    double& entry = table[bits >> 48];
    sum = 0.5 * sum + entry / (1.0 + sum);
    entry = sum;
  }
  return bits + static_cast<std::uint64_t>(sum);
}

double calibration_seconds() {
  const double start = cpu_seconds();
  [[maybe_unused]] const volatile std::uint64_t kept = calibration_work();  // not optimised away
  return cpu_seconds() - start;
}

// User and system time of all ended child processes and their children.
double seconds_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Runs this program with these arguments, without its output. Returns its exit code, or 128 plus
// the signal that ended it.
int run_plumb(std::vector<std::string> words) {
  words.insert(words.begin(), "/proc/self/exe");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawn(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::system_error(error, std::generic_category(), "plumb run");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

double tier_seconds(const std::string& tier, const std::vector<std::string>& patterns) {
  std::vector<std::string> words{"run", "--quiet", "--json", "", "--tier", tier};
  for (const std::string& pattern : patterns) words.insert(words.end(), {"--case", pattern});
  const double before = seconds_of_children();
  const int code = run_plumb(words);
  if (code != 0) {
    throw UsageError(fmt::format(
        "plumb run --tier {} ended with {}: only tiers that pass are timed", tier, code));
  }
  return seconds_of_children() - before;
}

}  // namespace

std::vector<Measurement> bench_tiers(const TierBenchOptions& options) {
  constexpr int kRepetitions = 5;  // of the calibration, before and after each tier
  std::vector<double> unit;
  const auto calibrate = [&unit] {
    for (int i = 0; i < kRepetitions; ++i) unit.push_back(calibration_seconds());
  };
  calibration_seconds();  // warm-up: touches the table
  calibrate();
  std::vector<std::pair<std::string, double>> tiers;
  for (const std::string& tier : options.tiers) {
    tiers.emplace_back(tier, tier_seconds(tier, options.patterns));
    calibrate();
  }
  const Summary calibration = summarize(unit);
  std::vector<Measurement> measured;
  for (const auto& [tier, seconds] : tiers) {
    measured.push_back({tier + " tier",
                        seconds / calibration.median,
                        calibration.spread,
                        "calibrations",
                        {},
                        fmt::format("{:.1f} s of processor time; a calibration takes {:.3f} s",
                                    seconds, calibration.median)});
    measured.back().parts = {{"tier", seconds, "s"}, {"calibration", calibration.median, "s"}};
  }
  return measured;
}

}  // namespace plumb::tools
