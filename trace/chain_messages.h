// SPDX-License-Identifier: Apache-2.0
//
// Between plumb judge and its workers that check chains of calls.
#pragma once

#include <string>
#include <vector>

#include "process/codec.h"
#include "trace/chain_check.h"

namespace plumb::trace {

inline constexpr const char* kChainRole = "trace chains";  // of such a worker

struct ChainRequest {
  std::string path;  // of the file of a step
};

struct ChainAnswer {
  std::string refused;  // why the file cannot be used: one line
  ChainReport report;
};

// The worker's side, until the parent hangs up. Returns the exit code.
int serve_chains();

}  // namespace plumb::trace
