// SPDX-License-Identifier: Apache-2.0
//
// One case of a run, wherever it runs: in this process, in a worker, or nowhere because the plug-in
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
  // Among all cases that the command line selects, which a worker counts again: it does not know
  // which of them are run.
  std::size_t number = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start);

// Folder of the goldens that a run is compared with. "": none, because the inputs or the kernels
// are not those of the goldens.
std::string golden_folder(const RunArguments& arguments);

// Runs a case in this process. Throws cases::BadRow, which names the case. With `diagnosed`, a
// failure is explained by planted defects, which runs wrong kernels.
Finished run_task(const Task& task, const RunArguments& arguments, cases::Tier tier,
                  bool diagnosed);

// Runs tasks for one thread, in a worker process or in this one.
class CaseRunner {
 public:
  // `environment`: of its worker, NAME=value.
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

// The worker's side. `tasks`: all that the same command line selects.
int serve_cases(const std::vector<Task>& tasks, const RunArguments& arguments, cases::Tier tier);

}  // namespace plumb::tools
