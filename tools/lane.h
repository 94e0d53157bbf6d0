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

#include "process/worker.h"
#include "tools/commands.h"
#include "tools/plugin.h"
#include "tools/report.h"
#include "tools/selection.h"

namespace plumb::tools {

struct Task {
  const cases::AnyCase* which;
  std::string platform;
};

double seconds_since(std::chrono::steady_clock::time_point start);

// The store that the results of a run are compared with; "" for none, as where the inputs or the
// kernels are not those that goldens are about.
std::string golden_folder(const RunArguments& arguments);

// In this process. Throws cases::BadRow, which names the case. `diagnosed`: a failure is, which
// runs kernels that are wrong.
Finished run_task(const Task& task, const RunArguments& arguments, cases::Tier tier,
                  bool diagnosed);

// One thread's way to run tasks: in a worker process, or here.
class Lane {
 public:
  Lane(const std::vector<Task>& tasks, const RunArguments& arguments, cases::Tier tier);

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

// The worker's side: the same command line has made the same list of tasks.
int serve_cases(const std::vector<Task>& tasks, const RunArguments& arguments, cases::Tier tier);

}  // namespace plumb::tools
