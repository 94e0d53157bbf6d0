// SPDX-License-Identifier: Apache-2.0
//
// Compares the calls of several ranks in one step: replicated tensors are equal, and the result of
// a collective follows from the parts that the ranks gave to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/call_place.h"
#include "trace/judge_call.h"

namespace plumb::trace {

struct RankStep {
  const TraceStep& step;
  const StepBytes& bytes;
};

// A tensor of one rank that does not agree with the others.
struct RankFinding {
  CallPlace call;
  std::string collective;   // "": a replicated tensor
  std::int64_t other = -1;  // the rank whose tensor is another one; -1: the parts of all ranks
  std::string tensor;
  std::int64_t elements = 0, of_elements = 0;  // elements that differ
  // "[1, 0]: 0.5 and 0.25", "[1, 0]: 0.5, the sum is 0.25 +- 0.002", or how the shapes differ
  std::string first;
};

struct RankReport {
  std::int64_t step = 0;
  std::int64_t checked = 0, wrong = 0;               // tensors that were compared with other ranks
  std::vector<RankFinding> found;                    // the first of the wrong ones
  std::map<std::string, std::int64_t> not_compared;  // comparisons by the reason
};

// The n-th call of a rank with the same op, layer, collective and group as the n-th of another one
// is the same call. Throws BadTrace.
RankReport check_ranks(const std::vector<RankStep>& ranks);

}  // namespace plumb::trace
