// SPDX-License-Identifier: Apache-2.0
//
// select_candidate_blocks: the first level of V4.1's two-level top-k (docs/operations/top_k.md,
// 4.4). The definition follows SGLang: select_candidate_block_ids in torch, and the scores of
// amax8_varlen (python/sglang/kernels/ops/attention/dsv4), whose rows begin at column 0.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/top_k/candidate_blocks.h"

namespace plumb::reference {

enum class NanBlock { dropped, top, forced, ignored, unspecified };

struct CandidateSelection {
  BlockedLogits rows;
  std::int64_t topk_blocks = 0;
  NanBlock nan_block = NanBlock::dropped;
  bool dead_blocks_have_indices = false;
  bool newest_in_grid = false;
};

// A block that a row may select. Blocks with equal keys may replace each other.
struct BlockScore {
  std::int32_t block = 0;
  std::uint32_t key = 0;
};

struct BlockScores {
  std::vector<BlockScore> blocks;  // ascending by block
  std::int64_t dropped = 0;        // blocks with NaN that take a place and are -1 in the result
  bool free = false;               // a row with NaN from which any different blocks are right

  // Number of blocks that a result with k places has.
  std::int64_t wanted(std::int64_t k) const;
};
BlockScores score_blocks(const CandidateSelection& input, std::int64_t row);

// Indices of the k best blocks, ascending, then -1 up to k. Of equal keys, the first ones.
std::vector<std::int32_t> best_blocks(const BlockScores& scores, std::int64_t k);
// [rows, topk_blocks]
std::vector<std::int32_t> select_candidate_blocks(const CandidateSelection& input);

enum class CandidateError {
  missing,   // -1, although more blocks may be selected
  no_block,  // neither -1 nor a block that the row may select
  repeated,  // a block that was already used
  loser      // a block with a larger score was left out instead
};
std::string_view name_of(CandidateError error);

struct WrongCandidate {
  std::int64_t place = 0;  // in [0, k)
  CandidateError error = CandidateError::missing;
  std::int32_t expected = -1;  // a block that was left out; -1: none
};
// Wrong places of one row, ascending. -1 may stand at any place.
std::vector<WrongCandidate> check_candidates(const BlockScores& scores, std::int64_t k,
                                             const std::int32_t* blocks);
// The key of the worst selected block if others have the same key and are left out, else 0, which
// is no block's key.
std::uint32_t tied_key(const BlockScores& scores, std::int64_t k);

}  // namespace plumb::reference
