// SPDX-License-Identifier: Apache-2.0
//
// Compares two recorded calls that read the same bits and wrote different ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cases/studies/call_difference.h"
#include "trace/judge_call.h"

namespace plumb::trace {

struct PairReport {
  std::string not_judged;  // why the bounds of the op are unknown; "": they are known
  std::vector<cases::TensorDifference> tensors;  // the tensors that differ
  std::string a_wrong, b_wrong;                  // cases::CallDifference
  // Numbers of row pairs (for whole calls 0 or 1) that differ, and that differ by more than the
  // bounds of both calls allow.
  std::int64_t differ = 0, beyond = 0;
};

// `pairs`: rows to compare; empty: the whole calls. Throws BadTrace.
PairReport compare_pair(const TraceCall& a, const StepBytes& bytes_a, const TraceCall& b,
                        const StepBytes& bytes_b, const std::vector<cases::RowPair>& pairs);

}  // namespace plumb::trace
