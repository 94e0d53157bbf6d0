// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trace/judge_call.h"

namespace plumb::trace {

// NaN and infinity among what a call wrote, where nothing that it read has any: "out: 3 elements
// are NaN or infinite, the first at [0, 4], and no input has one". "": none, or it cannot be said
// because values were not recorded. A negative infinity is what masks write, and counts as a
// number.
std::string unexplained_non_finite(const TraceCall& call, const StepBytes& bytes);

}  // namespace plumb::trace
