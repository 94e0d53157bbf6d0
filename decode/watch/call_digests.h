// SPDX-License-Identifier: Apache-2.0
//
// Digests of the outputs of each call of a decode step. A golden stores them: they show which call
// was the first to give other bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/watch/watched_step.h"

namespace plumb::cases {

struct CallDigest {
  std::string call;  // "rms_norm (layer 1 attention norm)"
  std::uint64_t digest = 0;
  bool operator==(const CallDigest&) const = default;
};
using CallDigests = std::vector<std::vector<CallDigest>>;  // by step

// Adds the calls of a step in the order in which the recorded engine made them. A step with
// findings adds nothing, because some of its calls may not have run.
void add_digests(const WatchedStep& step, CallDigests& digests);

}  // namespace plumb::cases
