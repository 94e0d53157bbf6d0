// SPDX-License-Identifier: Apache-2.0
//
// Requests to and answers of the worker processes of plumb run and plumb faults.
#pragma once

#include <optional>
#include <string>

#include "diagnosis/step_diagnosis.h"
#include "process/codec.h"
#include "tools/report.h"

namespace plumb::tools {

// plumb run: runs the case of the task.
struct CaseRequest {
  bool diagnosed = false;  // explain a failure, which runs wrong kernels
};
struct CaseAnswer {
  std::optional<Finished> finished;
  std::string unusable;  // reason why the row or the plug-in is unusable; ends the run
};

// plumb faults: executes the run of the task. The answer is a cases::DiagnosedWatch.
struct WatchRequest {
  bool diagnosed = false;
};

}  // namespace plumb::tools
