// SPDX-License-Identifier: Apache-2.0
//
// One case of a run, wherever it runs: in this process, in a worker, or nowhere because the plug-in
// lacks its op.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "tools/plugin.h"
#include "tools/report.h"
#include "tools/selection.h"
#include "tools/worker.h"

namespace plumb::tools {

struct Task {
  const cases::Case* which;
  std::string platform;
};

double seconds_since(std::chrono::steady_clock::time_point start);

// The store that the results of a run are compared with; "" for none, as where the inputs or the
// kernels are not those that goldens are about.
std::string golden_folder(const RunArguments& arguments);

// In this process. Throws cases::BadRow, which names the case.
Finished run_task(const Task& task, const RunArguments& arguments, cases::Tier tier);

// One thread's way to run tasks: in a worker process, or here.
class Lane {
 public:
  Lane(const std::vector<Task>& tasks, const RunArguments& arguments, cases::Tier tier)
      : tasks_(tasks),
        arguments_(arguments),
        tier_(tier),
        worker_(own_command_line(), arguments.timeout) {}

  Finished run(std::size_t task);

 private:
  const std::vector<Task>& tasks_;
  const RunArguments& arguments_;
  cases::Tier tier_;
  Worker worker_;
};

}  // namespace plumb::tools
