// SPDX-License-Identifier: Apache-2.0
//
// Choices of the host about the compressor of V4's layers   [10.1]. Defaults are right; faults
// override them.
#pragma once

#include <cstdint>

#include "decode/engine/geometry.h"

namespace plumb::device::decode {

struct StepPlan;

class CompressorPolicy {
 public:
  virtual ~CompressorPolicy() = default;
  // Rows of a buffer of compressed slots that are written in front of a step: all of them. Rows
  // behind the tokens of this step would keep the slots of an earlier, larger step.
  virtual std::int64_t written_slots(std::int64_t /*tokens*/, std::int64_t buffer) const {
    return buffer;
  }
  // Whether a layer of this kind compresses in a step. Right is: always, because the kernel finds
  // the tokens that complete a state.
  virtual bool compresses(Attention /*kind*/, const StepPlan& /*plan*/) const { return true; }
  // Whether the partial states of a step are saved before any of them is compressed.
  virtual bool saves_first() const { return true; }
};

}  // namespace plumb::device::decode
