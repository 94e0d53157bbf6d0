// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/get_decoding_sched_meta.h"

#include <algorithm>

namespace plumb::reference {

namespace {

using Kind = TilePlanDefectKind;

// The blocks of one request that one part processes.
struct TileSpan {
  std::int64_t part = 0, begin = 0, end = 0, split = 0;
  bool is_split = false;
};

class TileCheck {
 public:
  explicit TileCheck(std::span<const RequestBlocks> blocks)
      : blocks_(blocks), spans_(blocks.size()) {}

  void add(std::int64_t part, const Tile& tile) {
    if (tile.begin_req >= std::ssize(blocks_)) return;
    if (tile.begin_req < 0 || tile.end_req < tile.begin_req ||
        tile.end_req >= std::ssize(blocks_)) {
      found_.defects.push_back({Kind::no_request, part, -1, tile.begin_req});
      return;
    }
    for (std::int64_t request = tile.begin_req; request <= tile.end_req; ++request) {
      const bool first = request == tile.begin_req, last = request == tile.end_req;
      TileSpan span{.part = part, .end = total(request)};
      if (first) span.begin = tile.begin_block;
      if (first) span.split = tile.begin_split;
      if (last) span.end = tile.end_block;
      span.is_split = first ? tile.first_split != 0 : last && tile.last_split != 0;
      if (span.begin < 0 || span.begin >= span.end || span.end > total(request)) {
        found_.defects.push_back({Kind::no_block, part, -1, request, span.begin});
      } else {
        spans_[static_cast<std::size_t>(request)].push_back(span);
      }
    }
  }

  TilePlanCheck finish() {
    for (std::int64_t request = 0; request < std::ssize(blocks_); ++request) {
      std::vector<TileSpan>& spans = spans_[static_cast<std::size_t>(request)];
      found_.parts.push_back(std::ssize(spans));
      std::sort(spans.begin(), spans.end(), [](const TileSpan& a, const TileSpan& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.part < b.part;
      });
      check_blocks(request, spans);
      check_splits(request, spans);
    }
    return std::move(found_);
  }

 private:
  std::int64_t total(std::int64_t request) const {
    return blocks_[static_cast<std::size_t>(request)].total();
  }

  void check_blocks(std::int64_t request, const std::vector<TileSpan>& spans) {
    std::int64_t done = 0, part = -1;
    for (const TileSpan& span : spans) {
      if (span.begin > done) found_.defects.push_back({Kind::missing, -1, -1, request, done});
      if (span.begin < done) {
        found_.defects.push_back({Kind::twice, part, span.part, request, span.begin});
      }
      if (span.end > done) part = span.part;
      done = std::max(done, span.end);
    }
    if (done < total(request)) {
      found_.defects.push_back({Kind::missing, -1, -1, request, done});
    }
  }

  void check_splits(std::int64_t request, const std::vector<TileSpan>& spans) {
    std::vector<std::int64_t> writer(spans.size(), -1);
    for (const TileSpan& span : spans) {
      if (span.is_split != (spans.size() > 1)) {
        found_.defects.push_back({Kind::flag, span.part, -1, request});
      }
      if (spans.size() < 2) continue;
      if (span.split < 0 || span.split >= std::ssize(spans)) {
        found_.defects.push_back({Kind::split, span.part, -1, request, span.split});
        continue;
      }
      std::int64_t& other = writer[static_cast<std::size_t>(span.split)];
      if (other >= 0) {
        found_.defects.push_back({Kind::split, span.part, other, request, span.split});
      }
      other = span.part;
    }
  }

  std::span<const RequestBlocks> blocks_;
  std::vector<std::vector<TileSpan>> spans_;  // [requests]
  TilePlanCheck found_ = {};
};

}  // namespace

TilePlanCheck check_tiles(std::span<const Tile> tiles, std::span<const RequestBlocks> blocks) {
  TileCheck check(blocks);
  for (std::int64_t part = 0; part < std::ssize(tiles); ++part) {
    check.add(part, tiles[static_cast<std::size_t>(part)]);
  }
  return check.finish();
}

}  // namespace plumb::reference
