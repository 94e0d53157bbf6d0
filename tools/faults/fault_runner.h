// SPDX-License-Identifier: Apache-2.0
//
// Watched decode steps, each run in a worker process: a fault may crash the process that it is
// planted in, and costs no other run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "diagnosis/fault_verdict.h"
#include "process/worker.h"

namespace plumb::tools {

using ReportRun = std::function<void(const cases::FinishedRun&)>;

// worker: the command line of a process that answers with the result of the run of a number. Some
// at a time, reported in their order.
std::vector<cases::FinishedRun> run_all(const std::vector<cases::DecodeRun>& runs,
                                        const std::vector<std::string>& worker, int jobs,
                                        const ReportRun& report);

// The worker's side. `plugin`: the library or Python file whose kernels serve the steps. Its runs
// have no diagnosis, because planted kernels are not in its process.
int serve_watches(const std::vector<cases::DecodeRun>& runs, const std::string& plugin);

}  // namespace plumb::tools
