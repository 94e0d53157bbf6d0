// SPDX-License-Identifier: Apache-2.0
//
// Between plumb judge and its workers, which alone read the files of a trace: a file that crashes
// HDF5 ends a worker.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "process/codec.h"
#include "trace/judge_call.h"

namespace plumb::trace {

inline constexpr const char* kCallsRole = "calls";

// Calls [begin, end) of a file of a step. None: what the file holds.
struct CallsRequest {
  std::string path;
  std::int64_t begin = 0, end = 0;
  std::int64_t most_rows = 0;  // RowSampling
  double budget = 0;
};

struct CallsAnswer {
  std::string refused;  // why the file cannot be used: one line
  std::int64_t calls = 0, rank = 0, step = 0;
  std::map<std::string, std::string> provenance;
  std::vector<CallReport> reports;
};

// The worker's side, until the parent hangs up. Returns the exit code.
int serve_trace_calls();

}  // namespace plumb::trace
