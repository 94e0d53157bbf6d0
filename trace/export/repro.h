// SPDX-License-Identifier: Apache-2.0
//
// One wrong call as a file of Python that needs torch alone, for an upstream issue.
#pragma once

#include <cstdint>
#include <string>

#include "trace/judge_call.h"

namespace plumb::trace {

inline constexpr const char* kReproRole = "repro";

struct ReproRequest {
  std::string path;
  std::int64_t call = 0;
};

struct ReproAnswer {
  std::string refused;  // why the file cannot be used
  std::string why_not;  // why there is no text: the call is right, or its tensors are too large
  std::string text;     // of at most 25 lines
};

// The first wrong row alone, if the rows of the op are independent, or else the whole call. The
// file makes its inputs, calls `invoke` of the call, or has the recorded results in its place, and
// compares the worst element with what is right. Throws BadTrace.
ReproAnswer repro_of(const TraceStep& step, std::size_t call, const StepBytes& bytes);

// The worker's side.
int serve_repro();

}  // namespace plumb::trace
