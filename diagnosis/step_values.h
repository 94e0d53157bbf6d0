// SPDX-License-Identifier: Apache-2.0
//
// What the calls of a decode step read and wrote, kept behind the engine that took it.
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

// Of a twin whose work is over, in these parts of its step. Nothing of weights, nor of parts that
// have not run.
StepValues values_of(const WatchedEngine& twin, const device::decode::StepSegments::Parts& parts);
// How many bytes that would take.
std::int64_t bytes_of(const WatchedEngine& twin, const device::decode::StepSegments::Parts& parts);

}  // namespace plumb::cases
