// SPDX-License-Identifier: Apache-2.0
//
// Messages between plumb judge and the workers that compare the ranks of a step.
#pragma once

#include <string>
#include <vector>

#include "process/codec.h"
#include "trace/ranks/rank_check.h"

namespace plumb::trace {

inline constexpr const char* kRankRole = "trace ranks";  // role of such a worker

struct RankRequest {
  std::vector<std::string> paths;  // files of one step, one per rank
};

struct RankAnswer {
  std::string refused;  // why a file cannot be used: one line
  RankReport report;
};

// The worker's side. Serves requests until the parent closes the channel, and returns the exit
// code.
int serve_ranks();

}  // namespace plumb::trace
