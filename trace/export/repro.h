// SPDX-License-Identifier: Apache-2.0
//
// Writes one wrong call as a Python file that needs only torch, for an upstream issue.
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
  std::string text;     // at most 25 lines
};

// Uses only the first wrong row if the rows of the op are independent, else the whole call. The
// file makes the inputs, runs the call's `invoke` line (or uses the recorded results if there is
// none), and compares the worst element with the right value. Throws BadTrace.
ReproAnswer repro_of(const TraceStep& step, std::size_t call, const StepBytes& bytes);

// The worker's side: answers requests until the parent closes the channel, and returns the exit
// code.
int serve_repro();

}  // namespace plumb::trace
