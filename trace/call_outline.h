// SPDX-License-Identifier: Apache-2.0
//
// The calls of a step without the values of their tensors. Digests are enough to find equal calls
// in another trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/call_place.h"

namespace plumb::trace {

struct CallOutline {
  CallPlace place;
  // Digest of all tensors and scalars that the call read. "": it read nothing, or not everything
  // was recorded.
  std::string inputs;
  std::map<std::string, std::string> read;  // digest of each tensor that the call read
  // Digest of all tensors that the call wrote. "": it wrote nothing, or not everything was
  // recorded.
  std::string outputs;
};

struct StepOutline {
  std::string path;
  std::int64_t rank = 0, step = 0;
  std::map<std::string, std::string> provenance;
  std::vector<CallOutline> calls;
};

StepOutline outline_of(const TraceStep& step, const std::string& path);

}  // namespace plumb::trace
