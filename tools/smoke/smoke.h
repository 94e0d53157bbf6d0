// SPDX-License-Identifier: Apache-2.0
//
// The smoke tier without the program plumb: every op on every simulated platform, with
// uninstrumented kernels, without decode steps and goldens. It uses only the parts that compile
// first.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::tools {

struct SmokeTask {
  cases::Case which;
  std::string platform;
};

// Cases of the smoke tier that match a pattern (without patterns: all), on every simulated
// platform. Throws cases::BadRow.
std::vector<SmokeTask> smoke_tasks(const std::vector<std::string>& patterns);

struct SmokeSummary {
  std::size_t passed = 0, failed = 0, skipped = 0;
  std::string failures = {};  // text about each failed case, in the order of the tasks

  bool is_good() const { return passed > 0 && failed == 0; }
};

// Runs the tasks one by one in this process. Calls `progress` before each with the number of
// finished tasks. `options`: options of every case, except platform and tier.
SmokeSummary run_smoke(const std::vector<SmokeTask>& tasks, cases::RunOptions options,
                       const std::function<void(std::size_t done)>& progress);

}  // namespace plumb::tools
