// SPDX-License-Identifier: Apache-2.0
//
// The segments of a model's step, for graph runners: run whole, or in pieces split at the segments
// that break the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "decode/engine/calls.h"
#include "decode/policies/policies.h"

namespace plumb::device::decode {

// Size of a step: `tokens` with padding, for captured segments; `attended` tokens with metadata,
// for segments that break; and the plan of the step.
struct Extent {
  std::int64_t tokens = 0, attended = 0;
  const StepPlan& plan;
};

// Objects that a step uses. Each outlives the holders of this struct.
struct StepSite {
  Device& device;
  Stream stream;
  CachingAllocator& memory;
  const Geometry& geometry;
  const Caller& call;
  const StepInputs& inputs;
  const Policies& policies;
};

class StepSegments {
 public:
  // Consecutive segments: one that breaks, or a maximal run of segments that do not.
  struct Piece {
    std::size_t begin = 0, end = 0;
    bool breaks = false;
  };

  // `part`: name of the StepPart that a whole step is ("layers"). Each piece is a part of its own.
  StepSegments(std::vector<Segment> segments, std::string part, const StepSite& site);

  const std::vector<Piece>& pieces() const { return pieces_; }
  bool any_breaks() const;

  void run(const Extent& extent, AttentionState& state) const;  // as one part
  void run_in_pieces(const Extent& extent, AttentionState& state) const;
  void run_piece(const Piece& piece, const Extent& extent, AttentionState& state) const;

  // Parts that a step reported to its observer. Those that do not break may be replayed by graphs.
  using Parts = std::vector<StepPart>;
  Parts parts(const Extent& extent, bool in_pieces, bool replayed) const;

 private:
  StepPart whole(const Extent& extent) const;
  StepPart part_of(const Piece& piece, const Extent& extent) const;
  void run_segment(const Segment& segment, const Extent& extent, std::int64_t rows,
                   AttentionState& state) const;
  std::int64_t rows(const Extent& extent) const;

  std::vector<Segment> segments_;
  std::string part_;
  StepSite site_;
  std::vector<Piece> pieces_;
};

}  // namespace plumb::device::decode
