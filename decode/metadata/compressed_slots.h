// SPDX-License-Identifier: Apache-2.0
//
// Slots of the compressed states that the tokens of a step complete   [10.2], in buffers that keep
// their addresses. The host enqueues their computation before each step, never in a capture.
#pragma once

#include <cstdint>

#include "decode/engine/calls.h"
#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"
#include "decode/engine/step_inputs.h"
#include "decode/policies/compressor_policies.h"

namespace plumb::device::decode {

class CompressedSlots {
 public:
  CompressedSlots(const Geometry& geometry, const CompressorPolicy& policy, EngineMemory& memory);

  // Computes the slots of the first `tokens` tokens in each cache of compressed states that a layer
  // has. All rows behind them get -1: a captured step has more rows than some of its replays.
  void build(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
             std::int64_t requests) const;
  // [max_tokens]; -1: the token completes no state. nullptr: no layer has this cache.
  const std::int64_t* of(Cache cache) const { return slots_[static_cast<int>(cache)]; }

 private:
  const Geometry& geometry_;
  const CompressorPolicy& policy_;
  std::int64_t* slots_[kCaches] = {};
};

}  // namespace plumb::device::decode
