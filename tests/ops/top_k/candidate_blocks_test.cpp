// SPDX-License-Identifier: Apache-2.0
//
// Tests the ops of the two-level top-k: the references against rows computed by hand from
// docs/operations, both levels with top-k per row behind them on simulated platforms, and what the
// launchers refuse.
#include <gtest/gtest.h>
#include <plumb/ops/top_k.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cases/tensors/fill.h"
#include "device/device.h"
#include "reference/top_k/mask_candidate_logits.h"
#include "reference/top_k/select_candidate_blocks.h"
#include "tests/support/device_buffers.h"

namespace plumb::device::kernels {
device::OpEntry select_candidate_blocks();
device::OpEntry mask_candidate_logits();
device::OpEntry top_k_per_row_prefill();
}  // namespace plumb::device::kernels

namespace plumb::reference {
namespace candidate_blocks_test {

using Ints = std::vector<std::int32_t>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// One row of ten logits in blocks of 3. Its window is [1, 10): blocks 0, 1 and 2.
class CandidateBlocks : public testing::Test {
 protected:
  BlockedLogits rows() const {
    return {.logits = logits.data(),
            .row_starts = &start,
            .row_ends = &end,
            .rows = 1,
            .columns = std::ssize(logits),
            .row_stride = std::ssize(logits),
            .block_size = 3};
  }
  Ints selected(std::int64_t k) {
    input.rows = rows();
    input.topk_blocks = k;
    return select_candidate_blocks(input);
  }
  // Number of wrong places among the given blocks.
  std::size_t wrong(const Ints& blocks) {
    selected(std::ssize(blocks));
    return check_candidates(score_blocks(input, 0), std::ssize(blocks), blocks.data()).size();
  }
  std::string kept(const Ints& blocks, bool keep_last) const {
    std::string columns;
    const CandidateMask mask{rows(), blocks.data(), std::ssize(blocks), std::ssize(blocks),
                             keep_last};
    for (const bool is_kept : kept_columns(mask, 0)) columns += is_kept ? 'x' : '.';
    return columns;
  }

  std::vector<float> logits = {9, 1, 5, 1, /**/ 2, 7, 2, /**/ 0, 0, 3};
  std::int32_t start = 1, end = 10;
  CandidateSelection input;
};

TEST_F(CandidateBlocks, BlocksAreCountedFromTheStart) {
  EXPECT_EQ(selected(2), (Ints{1, 2}));  // 7, and the newest block
  EXPECT_EQ(selected(1), (Ints{2}));
  EXPECT_EQ(selected(4), (Ints{0, 1, 2, -1}));
  end = 8;  // block 2 has one column
  EXPECT_EQ(selected(2), (Ints{1, 2}));
  end = 7;
  EXPECT_EQ(selected(2), (Ints{0, 1}));
  start = 0;  // blocks 9, 2, 7
  EXPECT_EQ(selected(2), (Ints{0, 2}));
}

TEST_F(CandidateBlocks, EmptyWindowsHaveNone) {
  end = 1;
  EXPECT_EQ(selected(2), (Ints{-1, -1}));
  end = 0;
  EXPECT_EQ(selected(2), (Ints{-1, -1}));
  start = -1;
  EXPECT_THROW(selected(2), std::invalid_argument);
}

TEST_F(CandidateBlocks, TheNewestBlockMayHaveNoColumn) {
  end = 11;  // the newest block is 3, of a grid of 4
  EXPECT_EQ(selected(2), (Ints{0, 1}));
  input.newest_in_grid = true;
  EXPECT_EQ(selected(2), (Ints{1, 3}));
  EXPECT_EQ(selected(5), (Ints{0, 1, 2, 3, -1}));
  end = 14;  // the newest block is 4, outside of the grid
  EXPECT_EQ(selected(2), (Ints{0, 1}));
}

TEST_F(CandidateBlocks, DeadBlocksHaveNoIndex) {
  logits = {9, -kInf, -kInf, -kInf, 2, 7, 2, -kInf, -kInf, -kInf};
  EXPECT_EQ(selected(3), (Ints{1, 2, -1}));
  input.dead_blocks_have_indices = true;
  EXPECT_EQ(selected(3), (Ints{0, 1, 2}));
  EXPECT_EQ(selected(2), (Ints{1, 2}));
}

TEST_F(CandidateBlocks, ANanHidesTheLogitsOfItsBlock) {
  logits[4] = kNaN;
  logits[2] = kInf;
  EXPECT_EQ(selected(1), (Ints{-1}));  // block 1 takes the place
  EXPECT_EQ(selected(2), (Ints{0, -1}));
  EXPECT_EQ(wrong({-1, 2}), 0u);
  EXPECT_EQ(wrong({1, 0}), 1u);
  EXPECT_EQ(wrong({0, 2}), 1u);
  input.nan_block = NanBlock::top;
  EXPECT_EQ(selected(1), (Ints{1}));
  input.nan_block = NanBlock::forced;
  EXPECT_EQ(wrong({0}) + wrong({1}) + wrong({2}), 0u);
  EXPECT_EQ(wrong({-1}), 1u);
  input.nan_block = NanBlock::ignored;
  EXPECT_EQ(selected(2), (Ints{0, 2}));  // +inf, and the newest block; block 1 has 7
  logits[5] = logits[6] = kNaN;
  EXPECT_EQ(wrong({-1, -1}), 0u);  // a block of NaN alone: the row is free
  input.nan_block = NanBlock::unspecified;
  EXPECT_EQ(wrong({-1, 0}), 0u);
  EXPECT_EQ(wrong({0, 0}), 1u);
  EXPECT_EQ(wrong({3, 0}), 1u);
  logits[4] = logits[5] = logits[6] = 0;
  EXPECT_EQ(wrong({-1, 0}), 1u);  // no NaN
}

TEST_F(CandidateBlocks, TheVerdictTakesAnyOrderAndAnyTie) {
  EXPECT_EQ(wrong({2, 1}), 0u);
  EXPECT_EQ(wrong({-1, 2, 0, -1, 1}), 0u);
  EXPECT_EQ(wrong({0, 2}), 1u);
  EXPECT_EQ(wrong({1, -1}), 1u);
  EXPECT_EQ(wrong({2, 2}), 1u);
  EXPECT_EQ(wrong({2, 1, 0, 3}), 1u);
  logits[2] = 7;  // as block 1
  EXPECT_EQ(wrong({2, 1}) + wrong({0, 2}), 0u);
  EXPECT_EQ(wrong({0, 1}), 1u);
  logits = {0, 0.0F, -0.0F, 0, -0.0F, -0.0F, -0.0F, 1, 1, 1};
  EXPECT_EQ(wrong({2, 1}) + wrong({0, 2}), 0u);
}

TEST_F(CandidateBlocks, TheMaskKeepsColumnsOfCandidatesInTheWindow) {
  EXPECT_EQ(kept({1, -1}, false), "....xxx...");
  EXPECT_EQ(kept({2, 0}, false), ".xxx...xxx");
  end = 9;
  EXPECT_EQ(kept({2}, false), ".......xx.");
  EXPECT_EQ(kept({3}, true), "..........");  // the window does not reach the last column
  end = 12;
  EXPECT_EQ(kept({2}, false), ".......xxx");
  EXPECT_EQ(kept({3}, false), "..........");
  EXPECT_EQ(kept({3, -1}, true), ".........x");
  start = 10;
  EXPECT_EQ(kept({0}, true), "..........");
}

// One row of a decode step. Distinct logits: one result is right.
struct TwoLevels {
  static constexpr std::int64_t kColumns = 203, kStart = 6, kEnd = 200, kSize = 8, kBlocks = 5;
  static constexpr std::int64_t kTopK = 12;
  std::vector<float> logits;

  TwoLevels() {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      logits.push_back(static_cast<float>(c * 89 % kColumns));
    }
  }

  // The blocks with the largest logits, and the newest one.
  std::set<std::int64_t> best_blocks() const {
    std::vector<std::pair<float, std::int64_t>> blocks;
    for (std::int64_t c = kStart; c < kEnd; ++c) {
      blocks.emplace_back(logits[static_cast<std::size_t>(c)], (c - kStart) / kSize);
    }
    std::sort(blocks.rbegin(), blocks.rend());
    std::set<std::int64_t> best = {(kEnd - kStart - 1) / kSize};
    for (auto next = blocks.begin(); std::ssize(best) < kBlocks; ++next) best.insert(next->second);
    return best;
  }

  Ints expected() const {
    std::vector<std::pair<float, std::int32_t>> columns;
    const std::set<std::int64_t> blocks = best_blocks();
    for (std::int64_t c = kStart; c < kEnd; ++c) {
      if (!blocks.contains((c - kStart) / kSize)) continue;
      columns.emplace_back(logits[static_cast<std::size_t>(c)],
                           static_cast<std::int32_t>(c - kStart));
    }
    std::sort(columns.rbegin(), columns.rend());
    Ints indices;
    for (std::size_t i = 0; i < kTopK; ++i) indices.push_back(columns[i].second);
    std::sort(indices.begin(), indices.end());
    return indices;
  }
};

// The three launches of a step, and their result in ascending order.
class TwoLevelLaunches {
 public:
  explicit TwoLevelLaunches(const char* platform) : memory_(platform) {}

  Ints indices(const TwoLevels& row) {
    logits_ = memory_.upload(row.logits);
    starts_ = memory_.upload(Ints{TwoLevels::kStart});
    ends_ = memory_.upload(Ints{TwoLevels::kEnd});
    blocks_ = memory_.upload(Ints(TwoLevels::kBlocks, 77));
    plumb_select_candidate_blocks_params select{};
    set_row(select);
    EXPECT_EQ(device::kernels::select_candidate_blocks().launch(&select), PLUMB_OK);
    plumb_mask_candidate_logits_params mask{};
    set_row(mask);
    EXPECT_EQ(device::kernels::mask_candidate_logits().launch(&mask), PLUMB_OK);
    Ints got = top_k();
    std::sort(got.begin(), got.end());
    return got;
  }

 private:
  template <class P>
  void set_row(P& p) const {
    p.logits = logits_;
    p.row_starts = starts_;
    p.row_ends = ends_;
    p.blocks = blocks_;
    p.rows = p.row_repeat = 1;
    p.columns = p.logits_row_stride = TwoLevels::kColumns;
    p.logits_format = PLUMB_F32;
    p.topk_blocks = p.blocks_row_stride = TwoLevels::kBlocks;
    p.block_size = TwoLevels::kSize;
    p.stream = memory_.stream();
  }
  Ints top_k() {
    plumb_top_k_per_row_prefill_params p{};
    p.logits = logits_;
    p.row_starts = starts_;
    p.row_ends = ends_;
    p.indices = memory_.upload(Ints(TwoLevels::kTopK, 77));
    p.rows = p.logits_column_stride = 1;
    p.columns = p.logits_row_stride = TwoLevels::kColumns;
    p.k = p.indices_row_stride = TwoLevels::kTopK;
    p.stream = memory_.stream();
    EXPECT_EQ(device::kernels::top_k_per_row_prefill().launch(&p), PLUMB_OK);
    return memory_.download(p.indices, TwoLevels::kTopK);
  }

  tests::DeviceBuffers memory_;
  float* logits_ = nullptr;
  std::int32_t *starts_ = nullptr, *ends_ = nullptr, *blocks_ = nullptr;
};

TEST(TwoLevelTopK, SelectsTheBestColumnsOfTheBestBlocks) {
  const TwoLevels row;
  for (const char* platform : {"sim-sm90", "sim-gfx942"}) {
    EXPECT_EQ(TwoLevelLaunches(platform).indices(row), row.expected()) << platform;
  }
}

TEST(CandidateLaunchers, RefuseImpossibleArguments) {
  using P = plumb_select_candidate_blocks_params;
  const auto launched = [](void (*spoil)(P&)) {
    P p{};
    p.row_repeat = p.topk_blocks = p.block_size = p.blocks_row_stride = 1;
    p.columns = p.logits_row_stride = 4;
    p.logits_format = PLUMB_F32;
    spoil(p);
    plumb_mask_candidate_logits_params mask{};
    mask.rows = p.rows;
    mask.columns = p.columns;
    mask.row_repeat = p.row_repeat;
    mask.logits_row_stride = p.logits_row_stride;
    mask.logits_format = p.logits_format;
    mask.topk_blocks = p.topk_blocks;
    mask.block_size = p.block_size;
    mask.blocks_row_stride = p.blocks_row_stride;
    const plumb_status masked = device::kernels::mask_candidate_logits().launch(&mask);
    EXPECT_EQ(device::kernels::select_candidate_blocks().launch(&p), masked);
    return masked;
  };
  EXPECT_EQ(launched([](P&) {}), PLUMB_OK);  // no rows
  for (void (*spoil)(P&) :
       {+[](P& p) { p.rows = 1; }, +[](P& p) { p.rows = -1; }, +[](P& p) { p.row_repeat = 0; },
        +[](P& p) { p.topk_blocks = 0; }, +[](P& p) { p.block_size = 0; },
        +[](P& p) { p.columns = -1; }, +[](P& p) { p.logits_row_stride = 3; },
        +[](P& p) { p.blocks_row_stride = 0; }, +[](P& p) { p.logits_format = PLUMB_E4M3FN; },
        +[](P& p) {
          p.rows = 3;
          p.row_repeat = 2;
        }}) {
    EXPECT_EQ(launched(spoil), PLUMB_INVALID_ARGUMENT);
  }
  EXPECT_EQ(device::kernels::select_candidate_blocks().launch(nullptr), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(device::kernels::mask_candidate_logits().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace candidate_blocks_test
}  // namespace plumb::reference
