// SPDX-License-Identifier: Apache-2.0
//
// Extracts one recorded call from a trace as a row of the op's cases: a file that holds the row and
// its inputs (cases/recorded/recorded_file.h).
#pragma once

#include <cstdint>
#include <string>

#include "trace/judge_call.h"

namespace plumb::trace {

inline constexpr const char* kExtractRole = "extract";

struct ExtractRequest {
  std::string path;
  std::int64_t call = 0;
};

struct ExtractAnswer {
  std::string refused;  // why the file of the trace cannot be used
  std::string why_not;  // why the call cannot be a row
  std::string file;     // contents of the row's file
  std::string row;      // "rms_norm/recorded_0123456789ab"
};

// Throws BadTrace.
ExtractAnswer extract_call(const TraceStep& step, std::size_t call, const StepBytes& bytes);

// The worker's side: answers requests until the parent closes the channel, and returns the exit
// code.
int serve_extract();

}  // namespace plumb::trace
