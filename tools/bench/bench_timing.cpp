// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <algorithm>

#include "tools/bench/bench.h"

namespace plumb::tools {

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
  };
  const double median = quantile(0.5);
  return {median, median > 0 ? (quantile(0.75) - quantile(0.25)) / (2 * median) : 0};
}

std::vector<std::vector<double>> interleave(const std::vector<std::function<void()>>& tasks,
                                            int repetitions) {
  std::vector<std::vector<double>> seconds(tasks.size());
  for (const auto& task : tasks) task();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const double start = cpu_seconds();
      tasks[i]();
      seconds[i].push_back(cpu_seconds() - start);
    }
  }
  return seconds;
}

}  // namespace plumb::tools
