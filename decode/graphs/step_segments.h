// SPDX-License-Identifier: Apache-2.0
//
// A model's step as graph runners enqueue it: whole, or in pieces between the segments that break.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "decode/engine/calls.h"
#include "decode/policies/policies.h"

namespace plumb::device::decode {

// A step: padded tokens for what is captured, those with metadata for what breaks, and its plan.
struct Extent {
  std::int64_t tokens = 0, attended = 0;
  const StepPlan& plan;
};

// Where a step runs. Everything outlives who has it.
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
  // Consecutive segments: one that breaks, or as many as follow each other that do not.
  struct Piece {
    std::size_t begin = 0, end = 0;
    bool breaks = false;
  };

  // `part`: what calls of a whole step are part of ("layers"). A piece is one of its own.
  StepSegments(std::vector<Segment> segments, std::string part, const StepSite& site);

  const std::vector<Piece>& pieces() const { return pieces_; }
  bool any_breaks() const;

  void run(const Extent& extent, AttentionState& state) const;  // as one part
  void run_in_pieces(const Extent& extent, AttentionState& state) const;
  void run_piece(const Piece& piece, const Extent& extent, AttentionState& state) const;

  // The parts that a step has told its observer of; those that do not break may come from graphs.
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
