// SPDX-License-Identifier: Apache-2.0
//
// How a split decode divides its work: every request is a row of blocks of `block_n` candidates,
// laid end to end and cut into parts of about equal size. A request that a cut goes through is
// split; its splits are joined by mla_combine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumb::reference {

// Work of one part: requests [begin_req, end_req], the first from begin_block, the last up to
// end_block (exclusive). A part with begin_req >= requests has no work; its other fields mean
// nothing.
struct Tile {
  std::int32_t begin_req = 0, end_req = 0;
  std::int32_t begin_block = 0, end_block = 0;
  std::int32_t begin_split = 0;                  // index, within its request, of the first split
  std::int32_t first_split = 0, last_split = 0;  // 1: the first / last request is not whole

  friend bool operator==(const Tile&, const Tile&) = default;
};

struct TilePlan {
  std::vector<Tile> tiles;               // [num_parts]
  std::vector<std::int32_t> num_splits;  // [requests + 1], prefix sums
};

// Blocks of a request: main candidates are padded to at least one block, extra ones follow.
// `has_extra` says whether the op has an extra scope at all. A lonely request has one empty block.
struct RequestBlocks {
  std::int32_t main = 0, extra = 0;
  std::int32_t total() const { return main + extra; }
};
RequestBlocks request_blocks(std::int64_t main_length, bool has_extra, std::int64_t extra_length,
                             std::int64_t block_n);

// plumb's own number of parts: max(num_sms / queries / max(1, ceil(heads / 64)), 1).
std::int32_t plan_parts(std::int64_t num_sms, std::int64_t queries, std::int64_t heads);

// `blocks` [requests]. The overhead is the cost of starting on a request, in blocks.
TilePlan make_tile_plan(std::span<const RequestBlocks> blocks, std::int32_t num_parts,
                        std::int32_t fixed_overhead);

// What one part does for one request. `slot` is the row of the partial buffers where a split goes;
// a request that is not split is written to the outputs and uses no slot.
struct PlannedSpan {
  std::int32_t part = 0, request = 0;
  std::int32_t begin_block = 0, end_block = 0;
  std::int32_t slot = 0;
  bool split = false;
};
// All spans, by part. `blocks` are those at execution; they equal the plan's unless it is stale.
std::vector<PlannedSpan> planned_spans(const TilePlan& plan, std::span<const RequestBlocks> blocks);

}  // namespace plumb::reference
