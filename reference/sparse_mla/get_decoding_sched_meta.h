// SPDX-License-Identifier: Apache-2.0
//
// get_decoding_sched_meta: what a tile plan of a split decode has to promise, whichever way it
// divides the blocks (operations spec, 1.9).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/sparse_mla/tile_plan.h"

namespace plumb::reference {

enum class TilePlanDefectKind {
  no_request,  // `part` names a request that is not there, or ends in front of its first one
  no_block,    // `part` has blocks of `request` that are not there, or none of it
  missing,     // `block` of `request` is in no part
  twice,       // `block` of `request` is in `part` and in `other_part`
  flag,        // `part` says whether `request` is split, and is wrong
  split        // `part` and `other_part` write the same split of `request`; alone: none it has
};
struct TilePlanDefect {
  TilePlanDefectKind kind = TilePlanDefectKind::no_request;
  std::int64_t part = 0, other_part = -1, request = 0, block = 0;
};

// Parts of each request, and what is wrong with them. Without a defect, num_splits has to hold the
// prefix sums of the parts.
struct TilePlanCheck {
  std::vector<TilePlanDefect> defects;
  std::vector<std::int64_t> parts;  // [requests]
};
// A tile with begin_req >= requests has no work, and its other fields mean nothing. So does
// last_split where begin_req is end_req.
TilePlanCheck check_tiles(std::span<const Tile> tiles, std::span<const RequestBlocks> blocks);

}  // namespace plumb::reference
