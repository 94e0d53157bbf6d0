// SPDX-License-Identifier: Apache-2.0
//
// Choices in the host's bookkeeping of requests: which tokens count as computed, who owns a block,
// and the plan of a step.
#pragma once

#include <cstdint>

#include "decode/engine/geometry.h"

namespace plumb::device::decode {

struct StepPlan;

// Defaults are right; faults override them.
class RequestPolicy {
 public:
  virtual ~RequestPolicy() = default;
  // Number of tokens of a step that count as computed: those that were accepted.
  virtual std::int64_t counted(std::int64_t /*tokens*/, std::int64_t accepted) const {
    return accepted;
  }
  // For a prefix hit: number of blocks shared with the other request (`whole`: blocks that the
  // prefix fills), tokens that count as computed, and whether the block's owner count is increased.
  virtual std::int64_t shared_blocks(std::int64_t whole) const { return whole; }
  virtual std::int64_t hit_tokens(const Geometry& /*geometry*/, std::int64_t tokens) const {
    return tokens;
  }
  virtual bool counts_sharer() const { return true; }
  // Whether entries that a prefix hit does not find in a cache are computed again. False: their
  // blocks are allocated but keep old contents.
  virtual bool fills_gap(Cache /*cache*/) const { return true; }
  // Whether the drafter's entries of such a gap are computed again too.
  virtual bool fills_drafters_gap() const { return true; }
  // Blocks that end before this position are given back. `seen`: first position that the window of
  // the cache still sees.
  virtual std::int64_t leaves_before(const Geometry& /*geometry*/, Cache /*cache*/,
                                     std::int64_t seen) const {
    return seen;
  }
  // Whether a request forgets a block that left its window. False: the block is given back a second
  // time when the request ends.
  virtual bool forgets_left_blocks() const { return true; }
  virtual bool gives_back_at_end() const { return true; }
  // Changes the plan of a step after it is made. `before`: plan of the step before. Default: no
  // change.
  virtual void revise(const Geometry& /*geometry*/, const StepPlan& /*before*/,
                      StepPlan& /*plan*/) const {}
};

}  // namespace plumb::device::decode
