// SPDX-License-Identifier: Apache-2.0
//
// Tests the ops on the sparse blocks of V4.1's two-level top-k: the references against rows
// computed by hand from docs/operations, a row through both ops with top-k between them, and what
// the launchers refuse.
#include <gtest/gtest.h>
#include <plumb/ops/top_k.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "device/device.h"
#include "reference/top_k/expand_candidate_blocks.h"
#include "reference/top_k/remap_candidate_positions.h"
#include "tests/support/device_buffers.h"

namespace plumb::device::kernels {
device::OpEntry expand_candidate_blocks();
device::OpEntry remap_candidate_positions();
device::OpEntry top_k_per_row_prefill();
}  // namespace plumb::device::kernels

namespace plumb::reference {
namespace sparse_blocks_test {

using Ints = std::vector<std::int32_t>;
using Numbers = std::vector<std::int64_t>;

// One row whose candidates have 4 columns, and whose sparse blocks have `size`.
struct SparseRow {
  std::int32_t start = 0, end = 0;
  std::int64_t size = 4;

  SparseBlocks expanded(const Ints& candidates) const {
    return expand_candidate_blocks({.blocks = candidates.data(),
                                    .row_starts = &start,
                                    .row_ends = &end,
                                    .rows = 1,
                                    .topk_blocks = std::ssize(candidates),
                                    .blocks_row_stride = std::ssize(candidates),
                                    .block_size = 4,
                                    .sparse_block_size = size});
  }
  Numbers blocks(const Ints& candidates) const { return expanded(candidates).blocks; }
  std::int64_t columns(const Ints& candidates) const { return expanded(candidates).ends.front(); }
  Numbers positions(const Ints& columns, const Ints& sparse_blocks) const {
    return remap_candidate_positions({.columns = columns.data(),
                                      .sparse_blocks = sparse_blocks.data(),
                                      .row_starts = &start,
                                      .rows = 1,
                                      .k = std::ssize(columns),
                                      .row_blocks = std::ssize(sparse_blocks),
                                      .sparse_block_size = size});
  }
};

TEST(ExpandedCandidates, AscendAndTheLastOneFillsTheRow) {
  const SparseRow row{.end = 18};  // blocks 0 to 4, and the last one has 2 columns
  EXPECT_EQ(row.blocks({4, -1, 0, 2}), (Numbers{0, 2, 4, 4}));
  EXPECT_EQ(row.columns({4, -1, 0, 2}), 2 * 4 + 2);
  EXPECT_EQ(row.blocks({3, 1}), (Numbers{1, 3}));
  EXPECT_EQ(row.columns({3, 1}), 8);  // the last block is no candidate
  EXPECT_EQ(row.columns({4}), 2);
  EXPECT_EQ(row.blocks({5, 3, INT32_MAX, INT32_MIN}), (Numbers{3, 3, 3, 3}));
}

TEST(ExpandedCandidates, AreCountedFromTheStart) {
  const SparseRow row{.start = 11, .end = 29};  // sparse block 2 has columns 11 to 14
  EXPECT_EQ(row.blocks({4, 0, -1}), (Numbers{2, 6, 6}));
  EXPECT_EQ(row.columns({4, 0, -1}), 4 + 2);
  EXPECT_THROW((SparseRow{.start = -1, .end = 4}.blocks({0})), std::invalid_argument);
}

TEST(ExpandedCandidates, WithoutAValidOneHaveTheBlockOfTheStart) {
  EXPECT_EQ((SparseRow{.start = 9, .end = 20}.blocks({-1, 3})), (Numbers{2, 2}));
  EXPECT_EQ((SparseRow{.start = 9, .end = 20}.columns({-1, 3})), 0);
  EXPECT_EQ((SparseRow{.start = 9, .end = 9}.blocks({0, 1})), (Numbers{2, 2}));
  EXPECT_EQ((SparseRow{.start = 9, .end = 3}.columns({0, 1})), 0);
}

TEST(ExpandedCandidates, AreAsManySparseBlocksAsTheyHold) {
  const SparseRow row{.end = 13, .size = 2};  // candidate 3 has one column
  EXPECT_EQ(row.blocks({3, 0}), (Numbers{0, 1, 6, 6}));
  EXPECT_EQ(row.columns({3, 0}), 2 + 2 + 1);
  EXPECT_EQ(row.blocks({1, 1, 0}), (Numbers{0, 1, 2, 2, 3, 3}));  // repeats are neighbours
  EXPECT_EQ(row.columns({1, 1, 0}), 12);
}

TEST(RemappedColumns, ArePositionsFromTheStart) {
  const SparseRow row{.start = 11};
  EXPECT_EQ(row.positions({0, 5, 3, -1}, {2, 6}), (Numbers{0, 17, 3, -1}));
  EXPECT_EQ(row.positions({7, 8, INT32_MIN, 0x3f3f3f3f}, {2, 6}), (Numbers{19, -1, -1, -1}));
}

// A row of 203 logits with the window [6, 200), in candidates of 16 columns and sparse blocks of 8.
struct SparseStep {
  static constexpr std::int64_t kColumns = 203, kSize = 8, kTopK = 20;
  static constexpr std::int32_t kStart = 6, kEnd = 200;
  Ints candidates = {12, 3, -1, 0, 7, -1};  // candidate 12 has 2 columns

  static float logit(std::int64_t column) {
    return static_cast<float>(column * 89 % kColumns);  // distinct
  }
  // The positions of the largest logits among the candidates' columns, in ascending order.
  Ints expected() const {
    std::vector<std::pair<float, std::int32_t>> best;
    for (std::int32_t position = 0; position < kEnd - kStart; ++position) {
      const bool chosen = std::count(candidates.begin(), candidates.end(), position / 16) > 0;
      if (chosen) best.emplace_back(-logit(kStart + position), position);
    }
    std::sort(best.begin(), best.end());
    Ints positions;
    for (std::size_t i = 0; i < kTopK; ++i) positions.push_back(best[i].second);
    std::sort(positions.begin(), positions.end());
    return positions;
  }
};

// The launches of a step around the sparse logits, which the host computes.
class SparseLaunches {
 public:
  explicit SparseLaunches(const char* platform) : memory_(platform) {}

  Ints positions(const SparseStep& step) {
    const std::int64_t candidates = std::ssize(step.candidates), sparse = 2 * candidates;
    starts_ = memory_.upload(Ints{SparseStep::kStart});
    plumb_expand_candidate_blocks_params expand{};
    expand.blocks = memory_.upload(step.candidates);
    expand.row_starts = starts_;
    expand.row_ends = memory_.upload(Ints{SparseStep::kEnd});
    expand.sparse_blocks = blocks_ = memory_.upload(Ints(static_cast<std::size_t>(sparse), 77));
    expand.sparse_ends = memory_.upload(Ints{77});
    expand.rows = 1;
    expand.topk_blocks = expand.blocks_row_stride = candidates;
    expand.block_size = 16;
    expand.sparse_block_size = SparseStep::kSize;
    expand.sparse_blocks_row_stride = sparse;
    expand.stream = memory_.stream();
    EXPECT_EQ(device::kernels::expand_candidate_blocks().launch(&expand), PLUMB_OK);
    Ints got = remapped(selected(sparse, expand.sparse_ends), sparse);
    std::sort(got.begin(), got.end());
    return got;
  }

 private:
  // The best columns of the sparse logits. Columns that are not valid have larger logits.
  std::int32_t* selected(std::int64_t sparse, const std::int32_t* ends) {
    std::vector<float> logits;
    for (const std::int32_t block : memory_.download(blocks_, sparse)) {
      const std::int64_t first = block * SparseStep::kSize + SparseStep::kStart % SparseStep::kSize;
      for (std::int64_t i = 0; i < SparseStep::kSize; ++i) {
        logits.push_back(first + i < SparseStep::kEnd ? SparseStep::logit(first + i) : 1e9F);
      }
    }
    plumb_top_k_per_row_prefill_params p{};
    p.logits = memory_.upload(logits);
    p.row_starts = memory_.upload(Ints{0});
    p.row_ends = ends;
    p.indices = memory_.upload(Ints(SparseStep::kTopK, 77));
    p.rows = p.logits_column_stride = 1;
    p.columns = p.logits_row_stride = std::ssize(logits);
    p.k = p.indices_row_stride = SparseStep::kTopK;
    p.stream = memory_.stream();
    EXPECT_EQ(device::kernels::top_k_per_row_prefill().launch(&p), PLUMB_OK);
    return p.indices;
  }
  Ints remapped(const std::int32_t* columns, std::int64_t sparse) {
    plumb_remap_candidate_positions_params p{};
    p.columns = columns;
    p.sparse_blocks = blocks_;
    p.row_starts = starts_;
    p.positions = memory_.upload(Ints(SparseStep::kTopK, 77));
    p.rows = 1;
    p.k = p.columns_row_stride = p.positions_row_stride = SparseStep::kTopK;
    p.row_blocks = p.sparse_blocks_row_stride = sparse;
    p.sparse_block_size = SparseStep::kSize;
    p.stream = memory_.stream();
    EXPECT_EQ(device::kernels::remap_candidate_positions().launch(&p), PLUMB_OK);
    return memory_.download(p.positions, SparseStep::kTopK);
  }

  tests::DeviceBuffers memory_;
  std::int32_t *starts_ = nullptr, *blocks_ = nullptr;
};

TEST(SparseTopK, SelectsTheBestColumnsOfTheCandidates) {
  const SparseStep step;
  for (const char* platform : {"sim-sm90", "sim-gfx942"}) {
    EXPECT_EQ(SparseLaunches(platform).positions(step), step.expected()) << platform;
  }
}

TEST(SparseLaunchers, ExpandRefusesImpossibleArguments) {
  using P = plumb_expand_candidate_blocks_params;
  const auto launched = [](void (*spoil)(P&)) {
    P p{};
    p.topk_blocks = p.blocks_row_stride = 2;
    p.block_size = p.sparse_blocks_row_stride = 8;
    p.sparse_block_size = 2;
    spoil(p);
    return device::kernels::expand_candidate_blocks().launch(&p);
  };
  EXPECT_EQ(launched([](P&) {}), PLUMB_OK);  // no rows
  for (void (*spoil)(P&) :
       {+[](P& p) { p.rows = 1; }, +[](P& p) { p.rows = -1; }, +[](P& p) { p.topk_blocks = 0; },
        +[](P& p) { p.block_size = 0; }, +[](P& p) { p.sparse_block_size = 0; },
        +[](P& p) { p.sparse_block_size = 3; }, +[](P& p) { p.blocks_row_stride = 1; },
        +[](P& p) { p.sparse_blocks_row_stride = 7; }}) {
    EXPECT_EQ(launched(spoil), PLUMB_INVALID_ARGUMENT);
  }
  EXPECT_EQ(device::kernels::expand_candidate_blocks().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

TEST(SparseLaunchers, RemapRefusesImpossibleArguments) {
  using P = plumb_remap_candidate_positions_params;
  const auto launched = [](void (*spoil)(P&)) {
    P p{};
    p.k = p.columns_row_stride = p.positions_row_stride = 3;
    p.row_blocks = p.sparse_blocks_row_stride = 2;
    p.sparse_block_size = 8;
    spoil(p);
    return device::kernels::remap_candidate_positions().launch(&p);
  };
  EXPECT_EQ(launched([](P&) {}), PLUMB_OK);  // no rows
  for (void (*spoil)(P&) :
       {+[](P& p) { p.rows = 1; }, +[](P& p) { p.rows = -1; }, +[](P& p) { p.k = 0; },
        +[](P& p) { p.row_blocks = 0; }, +[](P& p) { p.sparse_block_size = 0; },
        +[](P& p) { p.columns_row_stride = 2; }, +[](P& p) { p.positions_row_stride = 2; },
        +[](P& p) { p.sparse_blocks_row_stride = 1; }}) {
    EXPECT_EQ(launched(spoil), PLUMB_INVALID_ARGUMENT);
  }
  EXPECT_EQ(device::kernels::remap_candidate_positions().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace sparse_blocks_test
}  // namespace plumb::reference
