// SPDX-License-Identifier: Apache-2.0
//
// Tests combine_topk_swa_indices: the reference against rows computed by hand from docs/operations,
// against the ragged form, and what plumb's launcher refuses.
#include <gtest/gtest.h>
#include <plumb/ops/metadata.h>

#include <stdexcept>
#include <vector>

#include "device/device.h"
#include "reference/index_maps/combine_topk_swa_indices.h"

namespace plumb::device::kernels {
device::OpEntry combine_topk_swa_indices();
}  // namespace plumb::device::kernels

namespace plumb::reference {
namespace combine_dense_test {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;
constexpr std::int64_t kNone = kNoEntry;

// Regions of 20 rows, 8 of them for compressed states. Request 0 has two query tokens at positions
// 8 and 9, request 1 one at position 1. A fourth token is padding.
class CombineDense : public testing::Test {
 protected:
  DenseLists rows() {
    DenseChunkLists input;
    input.lists.queries = {starts.data(), seq_lens.data(), 2};
    input.lists.gather_lens = gather_lens.data();
    input.lists.topk_indices = topk.data();
    input.lists.tokens = 4;
    input.lists.topk_width = input.lists.topk_indices_row_stride = topk_width;
    input.lists.top_k = 2;
    input.lists.ratio = 4;
    input.lists.window = 3;
    input.lists.rows_per_request = 20;
    input.lists.compressed_rows = 8;
    input.lists.shift_minus_one = shifted;
    input.replay_start = replay.empty() ? nullptr : replay.data();
    input.left_visible = left.empty() ? nullptr : left.data();
    input.right_visible = right.empty() ? nullptr : right.data();
    input.width = width;
    input.check_bounds = checked;
    input.repeat_column_0 = repeated;
    return combine_topk_swa_indices(input);
  }
  Longs row(std::int64_t token) {
    const Longs indices = rows().indices;
    return {indices.begin() + token * width, indices.begin() + (token + 1) * width};
  }

  Ints starts = {5, 7, 8}, seq_lens = {10, 2}, gather_lens = {4, 2};
  Ints topk = {1, 0, -1, 1, 50, 60, 70, 80};
  Ints replay, left, right;
  std::int64_t topk_width = 2, width = 6;
  bool shifted = false, checked = false, repeated = true;
};

TEST_F(CombineDense, StatesThenWindowThenNothing) {
  EXPECT_EQ(rows().lens, (Longs{5, 5, 2, kNone}));
  EXPECT_EQ(row(0), (Longs{1, 0, 8, 9, 10, kNone}));
  EXPECT_EQ(row(1), (Longs{-1, 1, 9, 10, 11, kNone}));
  EXPECT_EQ(row(2), (Longs{28, 29, kNone, kNone, kNone, kNone}));
  EXPECT_EQ(row(3), Longs(6, kNone));
}

TEST_F(CombineDense, HasTheEntriesOfTheRaggedForm) {
  ChunkLists lists;
  lists.queries = {starts.data(), seq_lens.data(), 2};
  lists.gather_lens = gather_lens.data();
  lists.topk_indices = topk.data();
  lists.tokens = 4;
  lists.topk_width = lists.topk_indices_row_stride = lists.top_k = 2;
  lists.ratio = 4;
  lists.window = 3;
  lists.rows_per_request = 20;
  lists.compressed_rows = 8;
  for (const bool shift : {false, true}) {
    lists.shift_minus_one = shifted = shift;
    Longs flat;
    for (const std::int64_t entry : rows().indices) {
      if (entry != kNone) flat.push_back(entry);
    }
    EXPECT_EQ(flat, combine_topk_swa_indices_ragged(lists).flat);
  }
}

TEST_F(CombineDense, EntriesOutsideTheStatesFollowTheContract) {
  seq_lens = {10, 9};
  gather_lens = {4, 3};
  topk = {1, 0, 1, 0, -1, 8, 0, 0};
  EXPECT_EQ(row(2), (Longs{-1, 28, 28, 29, 30, kNone}));
  shifted = true;
  EXPECT_EQ(row(2), (Longs{19, 28, 28, 29, 30, kNone}));
  checked = true;
  EXPECT_EQ(row(2), (Longs{19, -1, 28, 29, 30, kNone}));
}

TEST_F(CombineDense, AMissingColumnIsColumn0OrMinusOne) {
  topk_width = 1;
  topk = {3, 1, 7, 7};
  EXPECT_EQ(row(0), (Longs{3, 3, 8, 9, 10, kNone}));
  repeated = false;
  EXPECT_EQ(row(0), (Longs{3, -1, 8, 9, 10, kNone}));
}

// Position 8: a window of 3 begins at 6. Two earlier tokens of an image are inside of it, four are
// not. The sequence ends at position 9.
TEST_F(CombineDense, AnImageExtendsTheWindowOnBothSides) {
  gather_lens = {8, 2};
  width = 9;
  left = {2, 0, 0, 0};
  right = {0, 0, 0, 0};
  EXPECT_EQ(row(0), (Longs{1, 0, 12, 13, 14, kNone, kNone, kNone, kNone}));
  left[0] = 4;
  right[0] = 1;
  EXPECT_EQ(row(0), (Longs{1, 0, 10, 11, 12, 13, 14, 15, kNone}));
  right[0] = 7;
  EXPECT_EQ(row(0), (Longs{1, 0, 10, 11, 12, 13, 14, 15, kNone}));
  replay = {7, 0};
  EXPECT_EQ(row(0), (Longs{1, 0, 13, 14, 15, kNone, kNone, kNone, kNone}));
}

TEST_F(CombineDense, AWindowThatWasNotGatheredOrDoesNotFitIsRefused) {
  width = 4;
  EXPECT_THROW(rows(), std::out_of_range);
  width = 6;
  gather_lens = {3, 2};
  EXPECT_THROW(rows(), std::out_of_range);
}

TEST(CombineDenseLauncher, RefusesImpossibleArguments) {
  using P = plumb_combine_topk_swa_indices_params;
  const auto launched = [](void (*spoil)(P&)) {
    P p{};
    p.ratio = p.window = 1;
    spoil(p);
    return device::kernels::combine_topk_swa_indices().launch(&p);
  };
  EXPECT_EQ(launched([](P&) {}), PLUMB_OK);  // no tokens
  static const std::int32_t some[1] = {};
  for (void (*spoil)(P&) :
       {+[](P& p) { p.ratio = 0; }, +[](P& p) { p.window = 0; }, +[](P& p) { p.tokens = 1; },
        +[](P& p) { p.width = 128; },  // rows closer than their columns
        +[](P& p) { p.left_visible = some; }, +[](P& p) { p.right_visible = some; }}) {
    EXPECT_EQ(launched(spoil), PLUMB_INVALID_ARGUMENT);
  }
  EXPECT_EQ(device::kernels::combine_topk_swa_indices().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace combine_dense_test
}  // namespace plumb::reference
