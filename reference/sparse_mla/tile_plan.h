// SPDX-License-Identifier: Apache-2.0
//
// How a split decode divides its work. Every request is a row of blocks of `block_n` candidates.
// The rows are concatenated and cut into parts of about equal size. If a cut falls inside a
// request, the request is split, and mla_combine combines its splits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumb::reference {

// Work of one part: requests begin_req to end_req inclusive, the first from begin_block on, the
// last up to end_block (exclusive). A part with begin_req >= requests has no work, and its other
// fields are ignored.
struct Tile {
  std::int32_t begin_req = 0, end_req = 0;
  std::int32_t begin_block = 0, end_block = 0;
  std::int32_t begin_split = 0;                  // index of the first split within its request
  std::int32_t first_split = 0, last_split = 0;  // 1: the first / last request is split

  friend bool operator==(const Tile&, const Tile&) = default;
};

struct TilePlan {
  std::vector<Tile> tiles;               // [num_parts]
  std::vector<std::int32_t> num_splits;  // [requests + 1], prefix sums
};

// Blocks of a request: main candidates, padded to at least one block, then extra candidates.
// `has_extra` says whether the op has extra candidates at all. A request without candidates has one
// empty block.
struct RequestBlocks {
  std::int32_t main = 0, extra = 0;
  std::int32_t total() const { return main + extra; }
};
RequestBlocks request_blocks(std::int64_t main_length, bool has_extra, std::int64_t extra_length,
                             std::int64_t block_n);

// Number of parts that plumb's own planner uses: max(num_sms / queries / max(1, ceil(heads / 64)),
// 1).
std::int32_t plan_parts(std::int64_t num_sms, std::int64_t queries, std::int64_t heads);

// `blocks`: [requests]. `fixed_overhead`: cost of starting a request, in blocks.
TilePlan make_tile_plan(std::span<const RequestBlocks> blocks, std::int32_t num_parts,
                        std::int32_t fixed_overhead);

// Work of one part for one request. `slot` is the row of the partial buffers for a split. A request
// that is not split is written to the outputs and uses no slot.
struct PlannedSpan {
  std::int32_t part = 0, request = 0;
  std::int32_t begin_block = 0, end_block = 0;
  std::int32_t slot = 0;
  bool split = false;
};
// All spans, ordered by part. `blocks`: the blocks of each request when a kernel runs. They differ
// from those for which the plan was made if the plan is stale.
std::vector<PlannedSpan> planned_spans(const TilePlan& plan, std::span<const RequestBlocks> blocks);

}  // namespace plumb::reference
