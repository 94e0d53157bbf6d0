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

// A call that read other bytes from a memory range than the last recorded write left there.
struct BrokenChain {
  CallPlace writer, reader;
  std::string wrote, read;  // name of the tensor in each call
  // Bytes and elements that differ, of the elements that both calls have.
  std::int64_t bytes = 0, elements = 0, of_elements = 0;
  std::string first;  // "[1, 0]"
};

struct ChainReport {
  std::int64_t rank = 0, step = 0;
  // True if all writes are recorded: then a broken chain is a failure. Otherwise an unrecorded
  // kernel may have written in between.
  bool certain = false;
  std::int64_t checked = 0, broken = 0;
  std::vector<BrokenChain> found;  // the first of the broken chains
};

// A tensor is checked if the last recorded write to any of its bytes was to a tensor of the same
// place, shape, strides and dtype. For paged caches, the blocks that both calls stored are
// compared. Throws BadTrace.
ChainReport check_chains(const TraceStep& step, const StepBytes& bytes);

}  // namespace plumb::trace
