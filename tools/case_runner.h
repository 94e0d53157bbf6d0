// SPDX-License-Identifier: Apache-2.0
//
// Runs one case of a run in this process or in a worker process, or skips it because the plug-in
// lacks its op.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "process/worker.h"
#include "tools/commands.h"
#include "tools/plugin.h"
#include "tools/report.h"
#include "tools/selection.h"

namespace plumb::tools {

struct Task {
  const cases::AnyCase* which;
  std::string platform;
  // Number among all cases that the command line selects. A worker selects the same cases but does
  // not know which of them are run.
  std::size_t number = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start);

// Folder of the goldens (stored earlier results of plumb's own kernels) that a run is compared
// with. "": none, because inputs or kernels differ from those of the goldens.
std::string golden_folder(const RunArguments& arguments);

// Runs a case in this process. Throws cases::BadRow, which names the case. With `diagnosed`,
// planted defects are tried as explanations of a failure, which runs wrong kernels.
Finished run_task(const Task& task, const RunArguments& arguments, cases::Tier tier,
                  bool diagnosed);

// Runs tasks for one thread, in a worker process or in this one.
class CaseRunner {
 public:
  // `environment`: variables of the worker, NAME=value.
  CaseRunner(const std::vector<Task>& tasks, const RunArguments& arguments, cases::Tier tier,
             std::vector<std::string> environment = {});

  // Throws cases::BadRow, process::CannotStart, process::Interrupted.
  Finished run(std::size_t task);

 private:
  Finished run_in_worker(std::size_t task);
  Finished without_diagnosis(std::size_t task, const process::Death& crash);

  const std::vector<Task>& tasks_;
  const RunArguments& arguments_;
  cases::Tier tier_;
  process::Worker worker_;
};

// Runs in the worker process. `tasks`: all tasks that the command line selects.
int serve_cases(const std::vector<Task>& tasks, const RunArguments& arguments, cases::Tier tier);

}  // namespace plumb::tools
