// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trace/judge_call.h"

namespace plumb::trace {

// Reports NaN and infinity in the outputs of a call if no input has any: "out: 3 elements are NaN
// or infinite, the first at [0, 4], and no input has one". "": none, or unknown because values were
// not recorded. Negative infinity counts as a number, because masks write it.
std::string unexplained_non_finite(const TraceCall& call, const StepBytes& bytes);

}  // namespace plumb::trace
