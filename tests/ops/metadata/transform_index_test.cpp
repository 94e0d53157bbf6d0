// SPDX-License-Identifier: Apache-2.0
//
// Tests transform_index_page_table: the reference against rows computed by hand from
// docs/operations, and what plumb's launcher refuses.
#include <gtest/gtest.h>
#include <plumb/ops/metadata.h>

#include <stdexcept>
#include <vector>

#include "device/device.h"
#include "reference/index_maps/transform_index_page_table.h"

namespace plumb::device::kernels {
device::OpEntry transform_index_page_table();
}  // namespace plumb::device::kernels

namespace plumb::reference {
namespace transform_index_test {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

// Two tokens with three indices each, and two rows of a page table with two pages of four slots.
class TransformIndex : public testing::Test {
 protected:
  PageIndices transformed() {
    SelectedIndices input;
    input.topk_indices = indices.data();
    input.seq_lens = seq_lens.empty() ? nullptr : seq_lens.data();
    input.cu_seqlens_q = starts.empty() ? nullptr : starts.data();
    input.requests = starts.empty() ? 0 : std::ssize(starts) - 1;
    input.tokens = 2;
    input.topk = input.row_stride = 3;
    input.page_table = {pages.data(), 2, 2, 2, page_size};
    return transform_index_page_table(input);
  }

  Ints indices = {5, -1, 0, /**/ 7, 4, 3}, pages = {3, 9, /**/ 0, 7}, seq_lens, starts;
  std::int64_t page_size = 4;
};

TEST_F(TransformIndex, EachTokenHasItsRowOfThePageTable) {
  const PageIndices got = transformed();
  EXPECT_EQ(got.slots, (Longs{9 * 4 + 1, -1, 3 * 4, /**/ 7 * 4 + 3, 7 * 4, 3}));
  EXPECT_EQ(got.raw, (Longs{5, -1, 0, 7, 4, 3}));
}

TEST_F(TransformIndex, UpToTopkCandidatesAreAllSelected) {
  seq_lens = {2, 4};
  EXPECT_EQ(transformed().slots, (Longs{12, 13, -1, /**/ 31, 28, 3}));
  EXPECT_EQ(transformed().raw, (Longs{0, 1, -1, /**/ 7, 4, 3}));
  seq_lens = {3, 0};
  EXPECT_EQ(transformed().slots, (Longs{12, 13, 14, /**/ -1, -1, -1}));
  EXPECT_EQ(transformed().raw, (Longs{0, 1, 2, /**/ -1, -1, -1}));
}

TEST_F(TransformIndex, TokensOfARequestShareItsRow) {
  starts = {0, 0, 1};  // request 0 has no token, and token 1 is padding
  EXPECT_EQ(transformed().slots, (Longs{7 * 4 + 1, -1, 0, /**/ -1, -1, -1}));
  EXPECT_EQ(transformed().raw, (Longs{5, -1, 0, /**/ -1, -1, -1}));
  starts = {0, 2, 2};
  EXPECT_EQ(transformed().slots, (Longs{37, -1, 12, /**/ 9 * 4 + 3, 9 * 4, 3 * 4 + 3}));
}

TEST_F(TransformIndex, APageOfOneSlotIsTheSlot) {
  page_size = 1;
  indices = {1, 0, -1, /**/ 0, 0, 1};
  EXPECT_EQ(transformed().slots, (Longs{9, 3, -1, /**/ 0, 0, 7}));
}

TEST_F(TransformIndex, PagesBelow0MakeEntriesBelow0) {
  pages[1] = -1;
  EXPECT_EQ(transformed().slots, (Longs{kAnyNegative, -1, 12, /**/ 31, 28, 3}));
  EXPECT_EQ(transformed().raw, (Longs{5, -1, 0, 7, 4, 3}));
}

TEST_F(TransformIndex, IndicesBehindThePageTableAreRefused) {
  indices[3] = 8;
  EXPECT_THROW(transformed(), std::out_of_range);
}

TEST(TransformIndexLauncher, RefusesImpossibleArguments) {
  using P = plumb_transform_index_page_table_params;
  static const std::int32_t some[1] = {};
  static std::int32_t out[1] = {};
  const auto launched = [](void (*spoil)(P&)) {
    P p{};
    p.topk = p.page_size = p.topk_indices_row_stride = p.page_indices_row_stride = 1;
    spoil(p);
    return device::kernels::transform_index_page_table().launch(&p);
  };
  EXPECT_EQ(launched([](P&) {}), PLUMB_OK);  // no tokens
  for (void (*spoil)(P&) :
       {+[](P& p) { p.topk = 0; }, +[](P& p) { p.tokens = 1; }, +[](P& p) { p.requests = 1; },
        +[](P& p) { p.page_size = 0; }, +[](P& p) { p.page_size = 48; },
        +[](P& p) { p.cu_seqlens_q = some; }, +[](P& p) { p.raw_indices = out; },
        +[](P& p) { p.page_indices_row_stride = 0; }}) {
    EXPECT_EQ(launched(spoil), PLUMB_INVALID_ARGUMENT);
  }
  EXPECT_EQ(device::kernels::transform_index_page_table().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace transform_index_test
}  // namespace plumb::reference
