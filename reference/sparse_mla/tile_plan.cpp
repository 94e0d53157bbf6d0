// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/tile_plan.h"

#include <algorithm>
#include <stdexcept>

namespace plumb::reference {

namespace {

std::int32_t blocks_for(std::int64_t candidates, std::int64_t block_n) {
  return static_cast<std::int32_t>((candidates + block_n - 1) / block_n);
}

// Assigns blocks to parts in order. The next block is block `block_` of request `request_`.
class Cursor {
 public:
  Cursor(std::span<const RequestBlocks> blocks, std::int32_t overhead, TilePlan& plan)
      : blocks_(blocks), overhead_(overhead), plan_(plan) {}

  Tile take(std::int32_t payload) {
    Tile tile;
    tile.begin_req = request_;
    tile.begin_block = block_;
    tile.begin_split = split_;
    const bool cut_before = block_ != 0;
    advance(payload);
    tile.end_req = block_ > 0 ? request_ : request_ - 1;
    tile.end_block = block_ > 0 ? block_ : blocks_[tile.end_req].total();
    const bool cut_after = tile.end_block != blocks_[tile.end_req].total();
    const bool one_request = tile.begin_req == tile.end_req;
    tile.first_split = cut_before || (one_request && cut_after);
    tile.last_split = cut_after || (one_request && cut_before);
    return tile;
  }

  bool finished() const { return request_ == std::ssize(blocks_) && block_ == 0; }

 private:
  // Takes whole requests while they and their overhead fit into the payload, then as many blocks as
  // still fit.
  void advance(std::int32_t left) {
    for (; request_ < std::ssize(blocks_); ++request_, block_ = 0, split_ = 0) {
      const std::int32_t rest = blocks_[request_].total() - block_;
      if (left < rest + overhead_) {
        if (left <= overhead_) return;
        block_ += left - overhead_;
        ++split_;
        return;
      }
      left -= rest + overhead_;
      plan_.num_splits[request_ + 1] = plan_.num_splits[request_] + split_ + 1;
    }
  }

  std::span<const RequestBlocks> blocks_;
  std::int32_t overhead_;
  TilePlan& plan_;
  std::int32_t request_ = 0, block_ = 0, split_ = 0;
};

}  // namespace

RequestBlocks request_blocks(std::int64_t main_length, bool has_extra, std::int64_t extra_length,
                             std::int64_t block_n) {
  return {std::max(blocks_for(main_length, block_n), 1),
          has_extra ? blocks_for(extra_length, block_n) : 0};
}

std::int32_t plan_parts(std::int64_t num_sms, std::int64_t queries, std::int64_t heads) {
  const std::int64_t head_groups = std::max<std::int64_t>((heads + 63) / 64, 1);
  return static_cast<std::int32_t>(std::max<std::int64_t>(num_sms / queries / head_groups, 1));
}

TilePlan make_tile_plan(std::span<const RequestBlocks> blocks, std::int32_t num_parts,
                        std::int32_t fixed_overhead) {
  if (blocks.empty() || num_parts < 1) throw std::invalid_argument("tile plan: nothing to plan");
  std::int32_t total = 0;
  for (const RequestBlocks& request : blocks) total += request.total() + fixed_overhead;
  const std::int32_t payload = (total + num_parts - 1) / num_parts + fixed_overhead;

  TilePlan plan;
  plan.num_splits.assign(blocks.size() + 1, 0);
  Cursor cursor(blocks, fixed_overhead, plan);
  for (std::int32_t part = 0; part < num_parts; ++part) plan.tiles.push_back(cursor.take(payload));
  if (!cursor.finished()) throw std::logic_error("tile plan: blocks left over");
  return plan;
}

std::vector<PlannedSpan> planned_spans(const TilePlan& plan,
                                       std::span<const RequestBlocks> blocks) {
  std::vector<PlannedSpan> spans;
  for (std::int32_t part = 0; part < std::ssize(plan.tiles); ++part) {
    const Tile& tile = plan.tiles[part];
    if (tile.begin_req >= std::ssize(blocks)) continue;
    for (std::int32_t request = tile.begin_req; request <= tile.end_req; ++request) {
      const bool first = request == tile.begin_req, last = request == tile.end_req;
      PlannedSpan span;
      span.part = part;
      span.request = request;
      span.begin_block = first ? tile.begin_block : 0;
      span.end_block = last ? tile.end_block : blocks[request].total();
      span.slot = plan.num_splits[request] + (first ? tile.begin_split : 0);
      span.split = first ? tile.first_split : last && tile.last_split;
      spans.push_back(span);
    }
  }
  return spans;
}

}  // namespace plumb::reference
