// SPDX-License-Identifier: Apache-2.0
//
// Messages between plumb judge and its workers. Only workers read the files of a trace, so a file
// that crashes HDF5 ends only a worker.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "process/codec.h"
#include "trace/judge_call.h"

namespace plumb::trace {

inline constexpr const char* kCallsRole = "calls";

// Asks for calls [begin, end) of a step's file. An empty range asks what the file holds.
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

// The worker's side. Serves requests until the parent closes the channel, and returns the exit
// code.
int serve_trace_calls();

}  // namespace plumb::trace
