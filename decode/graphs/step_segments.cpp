// SPDX-License-Identifier: Apache-2.0
#include "decode/graphs/step_segments.h"

#include <algorithm>

namespace plumb::device::decode {

StepSegments::StepSegments(std::vector<Segment> segments, std::string part, const StepSite& site)
    : segments_(std::move(segments)), part_(std::move(part)), site_(site) {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const bool breaks = segments_[i].breaks;
    if (breaks || pieces_.empty() || pieces_.back().breaks) pieces_.push_back({i, i, breaks});
    pieces_.back().end = i + 1;
  }
}

bool StepSegments::any_breaks() const {
  return std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& p) { return p.breaks; });
}

void StepSegments::run(const Extent& extent, AttentionState& state) const {
  site_.call.begin(whole(extent));
  const std::int64_t padded = rows(extent);
  for (const Segment& segment : segments_) run_segment(segment, extent, padded, state);
}

void StepSegments::run_in_pieces(const Extent& extent, AttentionState& state) const {
  for (const Piece& piece : pieces_) run_piece(piece, extent, state);
}

void StepSegments::run_piece(const Piece& piece, const Extent& extent,
                             AttentionState& state) const {
  site_.call.begin(part_of(piece, extent));
  const std::int64_t padded = piece.breaks ? extent.tokens : rows(extent);
  for (std::size_t i = piece.begin; i < piece.end; ++i) {
    run_segment(segments_[i], extent, padded, state);
  }
}

// A segment that breaks is skipped if there is no live token.
void StepSegments::run_segment(const Segment& segment, const Extent& extent, std::int64_t rows,
                               AttentionState& state) const {
  const auto on = [&](std::int64_t tokens) {
    return StepContext{site_.call, site_.inputs, state, tokens, extent.plan};
  };
  if (!segment.breaks) return segment.run(on(rows));
  if (extent.attended == 0) return;
  site_.policies.breaks->run(segment, on(extent.attended), extent.tokens, site_.memory);
}

std::int64_t StepSegments::rows(const Extent& extent) const {
  return site_.policies.shapes->rows(extent.tokens, site_.inputs, site_.device, site_.stream);
}

StepSegments::Parts StepSegments::parts(const Extent& extent, bool in_pieces, bool replayed) const {
  Parts all;
  const auto add = [&](StepPart part, bool breaks) {
    part.replayed = replayed && !breaks;
    all.push_back(std::move(part));
  };
  if (!in_pieces) {
    add(whole(extent), false);
    return all;
  }
  for (const Piece& piece : pieces_) {
    if (!piece.breaks || extent.attended > 0) add(part_of(piece, extent), piece.breaks);
  }
  return all;
}

StepPart StepSegments::whole(const Extent& extent) const {
  return {part_, extent.tokens, !extent.plan.uniform};
}

// Calls of a captured piece depend on the number of tokens only, so `varies` is false.
StepPart StepSegments::part_of(const Piece& piece, const Extent& extent) const {
  const std::string name = part_ + " from " + segments_[piece.begin].name;
  if (!piece.breaks) return {name, extent.tokens, false};
  return {name, extent.attended, !extent.plan.uniform};
}

}  // namespace plumb::device::decode
