// SPDX-License-Identifier: Apache-2.0
//
// Compares the bytes that one call wrote with the bytes that a later call of the step read from the
// same memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/call_place.h"
#include "trace/judge_call.h"

namespace plumb::trace {

// A call that read other bytes than the last recorded call wrote.
struct BrokenChain {
  CallPlace writer, reader;
  std::string wrote, read;                                // names of the tensor in both calls
  std::int64_t bytes = 0, elements = 0, of_elements = 0;  // that differ, of those in both
  std::string first;                                      // "[1, 0]"
};

struct ChainReport {
  std::int64_t rank = 0, step = 0;
  // All writes are recorded: a broken chain is a failure. Else an unrecorded kernel may have
  // written in between.
  bool certain = false;
  std::int64_t checked = 0, broken = 0;
  std::vector<BrokenChain> found;  // the first ones
};

// A tensor is checked if the last recorded write to any of its bytes was to a tensor of the same
// place, shape, strides and dtype. Of paged caches the blocks are compared that both calls have.
// Throws BadTrace.
ChainReport check_chains(const TraceStep& step, const StepBytes& bytes);

}  // namespace plumb::trace
