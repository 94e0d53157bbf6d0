// SPDX-License-Identifier: Apache-2.0
#include "reference/top_k/select_candidate_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "reference/bound.h"
#include "reference/top_k/top_k_per_row.h"

namespace plumb::reference {

namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kNanKey = 0xffffffffu;

// Zeros have one key: which zero a maximum of both keeps is open.
std::uint32_t score_key(float score, NanBlock nan_block) {
  if (std::isnan(score)) return nan_block == NanBlock::forced ? order_key(kInfinite) : kNanKey;
  return order_key(score == 0 ? 0.0F : score);
}

// The largest logit of a block, or NaN. Where NaN is ignored, it is the score of a block that has
// nothing else.
float block_score(const CandidateSelection& input, std::int64_t row, const BlockedWindow& window,
                  std::int64_t block) {
  const std::int64_t first = window.start + block * window.size;
  float score = input.rows.logit(row, first);
  for (std::int64_t c = first; c < std::min(first + window.size, window.stop); ++c) {
    const float logit = input.rows.logit(row, c);
    const bool ignored = input.nan_block == NanBlock::ignored;
    if (std::isnan(logit) && !ignored) return logit;
    if (std::isnan(score) || logit > score) score = logit;
  }
  return score;
}

// Blocks by descending key, equal keys by ascending block.
std::vector<BlockScore> ranked_blocks(const BlockScores& scores) {
  std::vector<BlockScore> ranked = scores.blocks;
  std::sort(ranked.begin(), ranked.end(), [](const BlockScore& a, const BlockScore& b) {
    return a.key != b.key ? a.key > b.key : a.block < b.block;
  });
  return ranked;
}

}  // namespace

std::int64_t BlockScores::wanted(std::int64_t k) const {
  return std::min(std::max<std::int64_t>(k - dropped, 0), std::ssize(blocks));
}

BlockScores score_blocks(const CandidateSelection& input, std::int64_t row) {
  const BlockedWindow window = input.rows.window(row);
  BlockScores scores;
  bool has_nan = false;
  const auto add = [&](std::int64_t block, std::uint32_t key) {
    scores.blocks.push_back({static_cast<std::int32_t>(block), key});
  };
  for (std::int64_t block = 0; block < window.blocks; ++block) {
    const float score = block_score(input, row, window, block);
    if (block == window.newest) {
      add(block, order_key(kInfinite));
      continue;
    }
    has_nan |= std::isnan(score);
    if (std::isnan(score) && input.nan_block == NanBlock::dropped) {
      ++scores.dropped;
    } else if (score != -kInfinite || input.dead_blocks_have_indices) {
      add(block, score_key(score, input.nan_block));
    }
  }
  const bool only_in_grid = window.newest >= window.blocks && window.newest < window.grid;
  if (input.newest_in_grid && only_in_grid) add(window.newest, order_key(kInfinite));
  scores.free = has_nan && input.nan_block >= NanBlock::ignored;
  return scores;
}

std::vector<std::int32_t> best_blocks(const BlockScores& scores, std::int64_t k) {
  std::vector<BlockScore> ranked = ranked_blocks(scores);
  ranked.resize(static_cast<std::size_t>(scores.wanted(k)));
  std::vector<std::int32_t> blocks;
  for (const BlockScore& score : ranked) blocks.push_back(score.block);
  std::sort(blocks.begin(), blocks.end());
  blocks.resize(static_cast<std::size_t>(k), -1);
  return blocks;
}

std::vector<std::int32_t> select_candidate_blocks(const CandidateSelection& input) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(input.rows.rows * input.topk_blocks));
  parallel_for(input.rows.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto blocks = best_blocks(score_blocks(input, row), input.topk_blocks);
      std::copy(blocks.begin(), blocks.end(), all.begin() + row * input.topk_blocks);
    }
  });
  return all;
}

std::string_view name_of(CandidateError error) {
  switch (error) {
    case CandidateError::missing: return "-1 although there are more candidate blocks";
    case CandidateError::no_block: return "no candidate block of the row";
    case CandidateError::repeated: return "block returned twice";
    case CandidateError::loser: return "a block with a larger score was left out";
  }
  return "";
}

std::uint32_t tied_key(const BlockScores& scores, std::int64_t k) {
  const std::int64_t wanted = scores.wanted(k);
  if (wanted == 0 || std::ssize(scores.blocks) <= wanted) return 0;
  const std::vector<BlockScore> ranked = ranked_blocks(scores);
  const std::uint32_t least = ranked[static_cast<std::size_t>(wanted - 1)].key;
  return ranked[static_cast<std::size_t>(wanted)].key == least ? least : 0;
}

std::vector<WrongCandidate> check_candidates(const BlockScores& scores, std::int64_t k,
                                             const std::int32_t* blocks) {
  const std::vector<BlockScore> ranked = ranked_blocks(scores);
  const std::int64_t wanted = scores.wanted(k);
  const std::uint32_t least =
      wanted > 0 ? ranked[static_cast<std::size_t>(wanted - 1)].key : kNanKey;
  std::int64_t ties = std::count_if(ranked.begin(), ranked.begin() + wanted,
                                    [&](const BlockScore& score) { return score.key == least; });
  std::int64_t holes = scores.free ? k : k - wanted;
  std::set<std::int32_t> used;
  std::vector<WrongCandidate> wrong;
  for (std::int64_t place = 0; place < k; ++place) {
    const std::int32_t block = blocks[place];
    if (block == -1) {
      if (--holes < 0) wrong.push_back({place, CandidateError::missing});
      continue;
    }
    const auto found =
        std::lower_bound(scores.blocks.begin(), scores.blocks.end(), block,
                         [](const BlockScore& score, std::int32_t b) { return score.block < b; });
    if (found == scores.blocks.end() || found->block != block) {
      wrong.push_back({place, CandidateError::no_block});
    } else if (!used.insert(block).second) {
      wrong.push_back({place, CandidateError::repeated});
    } else if (!scores.free && (found->key < least || (found->key == least && --ties < 0))) {
      wrong.push_back({place, CandidateError::loser});
    }
  }
  auto missing = ranked.begin();
  for (WrongCandidate& place : wrong) {
    missing = std::find_if(missing, ranked.begin() + wanted,
                           [&](const BlockScore& score) { return !used.contains(score.block); });
    if (missing == ranked.begin() + wanted) break;
    place.expected = (missing++)->block;
  }
  return wrong;
}

}  // namespace plumb::reference
