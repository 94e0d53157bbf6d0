// SPDX-License-Identifier: Apache-2.0
//
// How the host keeps its requests: which tokens count as computed, who owns a block, and what the
// plan of a step says.
#pragma once

#include <cstdint>

#include "decode/engine/geometry.h"

namespace plumb::device::decode {

struct StepPlan;

// Each default is right.
class RequestPolicy {
 public:
  virtual ~RequestPolicy() = default;
  // Tokens of a step that count as computed: those that were accepted.
  virtual std::int64_t counted(std::int64_t /*tokens*/, std::int64_t accepted) const {
    return accepted;
  }
  // A prefix hit: blocks of the other request that are shared, of `whole` that the prefix fills;
  // tokens that count as computed; whether the new owner of a block is counted.
  virtual std::int64_t shared_blocks(std::int64_t whole) const { return whole; }
  virtual std::int64_t hit_tokens(const Geometry& /*geometry*/, std::int64_t tokens) const {
    return tokens;
  }
  virtual bool counts_sharer() const { return true; }
  // Whether window entries that a prefix hit does not find are computed again. False: their blocks
  // are taken and keep what they held.
  virtual bool fills_gaps() const { return true; }
  // Blocks that end in front of this position leave the window, whose first position is `seen`.
  virtual std::int64_t leaves_before(const Geometry& /*geometry*/, std::int64_t seen) const {
    return seen;
  }
  // A block that left the window is no longer the request's. False: it is given back again when the
  // request ends.
  virtual bool forgets_left_blocks() const { return true; }
  virtual bool gives_back_at_end() const { return true; }
  // What becomes of the plan of a step, `before` being that of the step before. Nothing.
  virtual void revise(const Geometry& /*geometry*/, const StepPlan& /*before*/,
                      StepPlan& /*plan*/) const {}
};

}  // namespace plumb::device::decode
