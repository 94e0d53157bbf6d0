// SPDX-License-Identifier: Apache-2.0
//
// get_decoding_sched_meta: checks the promises of a tile plan of a split decode. Any division of
// the blocks is right (operations spec, 1.9).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/sparse_mla/tile_plan.h"

namespace plumb::reference {

enum class TilePlanDefectKind {
  no_request,  // `part` names a request that does not exist, or ends before its first request
  no_block,    // `part` has blocks of `request` that do not exist, or no block of it
  missing,     // no part has `block` of `request`
  twice,       // `block` of `request` is in `part` and in `other_part`
  flag,        // `part` has a wrong flag whether `request` is split
  split  // `part` and `other_part` write the same split of `request`; or `part` writes a split that
         // does not exist
};
struct TilePlanDefect {
  TilePlanDefectKind kind = TilePlanDefectKind::no_request;
  std::int64_t part = 0, other_part = -1, request = 0, block = 0;
};

// The number of parts of each request, and the defects of the plan. Without a defect, num_splits
// must hold the prefix sums of `parts`.
struct TilePlanCheck {
  std::vector<TilePlanDefect> defects;
  std::vector<std::int64_t> parts;  // [requests]
};
// A tile with begin_req >= requests has no work, and its other fields are ignored. last_split is
// ignored if begin_req == end_req.
TilePlanCheck check_tiles(std::span<const Tile> tiles, std::span<const RequestBlocks> blocks);

}  // namespace plumb::reference
