// SPDX-License-Identifier: Apache-2.0
//
// What a worker process of plumb run or plumb faults is asked and answers.
#pragma once

#include <optional>
#include <string>

#include "diagnosis/step_diagnosis.h"
#include "process/codec.h"
#include "tools/report.h"

namespace plumb::tools {

// plumb run: the case of the request's task.
struct CaseRequest {
  bool diagnosed = false;  // a failure is explained, which runs kernels that are wrong
};
struct CaseAnswer {
  std::optional<Finished> finished;
  std::string unusable;  // why the row or the plug-in cannot be used, which ends the run
};

// plumb faults: the run of the request's task, answered with a cases::DiagnosedWatch.
struct WatchRequest {
  bool diagnosed = false;
};

}  // namespace plumb::tools
