// SPDX-License-Identifier: Apache-2.0
//
// The values that the calls of a decode step read and wrote, copied so that they outlive the
// engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/watch/watched_step.h"

namespace plumb::cases {

struct CallValues {
  std::string op, call;  // "sparse_mla_decode", "layers: layer 1 attention"
  std::vector<HostTensor> tensors;
};
using StepValues = std::vector<CallValues>;  // in the order of the calls

// Values of a finished watched engine in these parts of its step. Weights and parts that have not
// run are left out. Entries of caches that belong to no request of the step are zero.
StepValues values_of(const WatchedEngine& twin, const device::decode::StepSegments::Parts& parts);
// Size of values_of() in bytes.
std::int64_t bytes_of(const WatchedEngine& twin, const device::decode::StepSegments::Parts& parts);

}  // namespace plumb::cases
