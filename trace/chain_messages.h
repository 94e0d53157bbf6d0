// SPDX-License-Identifier: Apache-2.0
//
// Messages between plumb judge and the workers that check chains of calls.
#pragma once

#include <string>
#include <vector>

#include "process/codec.h"
#include "trace/chain_check.h"

namespace plumb::trace {

inline constexpr const char* kChainRole = "trace chains";  // role of such a worker

struct ChainRequest {
  std::string path;  // path of a step's file
};

struct ChainAnswer {
  std::string refused;  // why the file cannot be used: one line
  ChainReport report;
};

// The worker's side. Serves requests until the parent closes the channel, and returns the exit
// code.
int serve_chains();

}  // namespace plumb::trace
