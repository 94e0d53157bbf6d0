// SPDX-License-Identifier: Apache-2.0
//
// Two recorded calls that read the same bits and wrote others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/studies/call_difference.h"
#include "trace/judge_call.h"

namespace plumb::trace {

struct PairReport {
  std::string not_judged;  // why plumb cannot say how far right results may be apart; "": it can
  std::vector<cases::TensorDifference> tensors;  // that differ
  std::string a_wrong, b_wrong;                  // cases::CallDifference
  std::int64_t differ = 0, beyond = 0;           // of the pairs of rows; of whole calls 0 or 1
};

// `pairs`: rows of the calls; empty: the whole calls. Throws BadTrace.
PairReport compare_pair(const TraceCall& a, const StepBytes& bytes_a, const TraceCall& b,
                        const StepBytes& bytes_b, const std::vector<cases::RowPair>& pairs);

}  // namespace plumb::trace
