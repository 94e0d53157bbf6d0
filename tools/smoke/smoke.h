// SPDX-License-Identifier: Apache-2.0
//
// The smoke tier before there is a program plumb: every op on every simulated platform, with
// kernels that nobody instruments, without decode steps and goldens. Its parts are those that
// compile first.
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

// Cases of the smoke tier that one of the patterns names, all without a pattern, on every simulated
// platform. Throws cases::BadRow.
std::vector<SmokeTask> smoke_tasks(const std::vector<std::string>& patterns);

struct SmokeSummary {
  std::size_t passed = 0, failed = 0, skipped = 0;
  std::string failures = {};  // a block for each failed case, in the order of the tasks

  bool is_good() const { return passed > 0 && failed == 0; }
};

// Runs the tasks one after the other in this process. Tells `progress` before each how many are
// done. `options`: of every case, but for the platform and the tier.
SmokeSummary run_smoke(const std::vector<SmokeTask>& tasks, cases::RunOptions options,
                       const std::function<void(std::size_t done)>& progress);

}  // namespace plumb::tools
