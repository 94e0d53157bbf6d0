// SPDX-License-Identifier: Apache-2.0
//
// Runs decode steps under all checks (decode/watch) in worker processes: a fault may crash its
// process without affecting other runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "diagnosis/fault_verdict.h"
#include "process/worker.h"

namespace plumb::tools {

using ReportRun = std::function<void(const cases::FinishedRun&)>;

// `worker`: command line of a process that answers the number of a run with its result. Runs `jobs`
// runs at a time and reports them in order.
std::vector<cases::FinishedRun> run_all(const std::vector<cases::DecodeRun>& runs,
                                        const std::vector<std::string>& worker, int jobs,
                                        const ReportRun& report);

// Runs in the worker process. `plugin`: library or Python file whose kernels serve the steps; such
// runs have no diagnosis, because planted kernels are not in the plug-in's process.
int serve_watches(const std::vector<cases::DecodeRun>& runs, const std::string& plugin);

}  // namespace plumb::tools
