// SPDX-License-Identifier: Apache-2.0
//
// Tests convert_req_index_to_global: the reference against rows computed by hand from
// docs/operations, and what plumb's launcher refuses.
#include <gtest/gtest.h>
#include <plumb/ops/metadata.h>

#include <stdexcept>
#include <vector>

#include "device/device.h"
#include "reference/index_maps/convert_req_index_to_global.h"

namespace plumb::device::kernels {
device::OpEntry convert_req_index_to_global();
}  // namespace plumb::device::kernels

namespace plumb::reference {
namespace convert_req_index_test {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

// Two requests of two blocks of four positions. A block has five rows of the cache.
class ConvertReqIndex : public testing::Test {
 protected:
  ChosenPositions input() {
    ChosenPositions chosen;
    chosen.req_id = req_id.data();
    chosen.token_indices = positions.data();
    chosen.tokens = std::ssize(req_id);
    chosen.topk = chosen.row_stride = 4;
    chosen.block_table = {blocks.data(), 2, 2, 2, 4};
    chosen.block_stride_rows = 5;
    return chosen;
  }

  Ints req_id = {1, 0}, blocks = {3, 8, /**/ 6, 2};
  Ints positions = {7, -1, 0, 8, /**/ 3, 4, 5, -9};
};

TEST_F(ConvertReqIndex, RowsOfTheCacheInTheirColumns) {
  const GlobalIndices got = convert_req_index_to_global(input(), false);
  EXPECT_EQ(got.indices, (Longs{2 * 5 + 3, -1, 6 * 5, -1, 3 * 5 + 3, 8 * 5, 8 * 5 + 1, -1}));
  EXPECT_EQ(got.counts, (Longs{2, 3}));
}

TEST_F(ConvertReqIndex, ValidRowsFirst) {
  const GlobalIndices got = convert_req_index_to_global(input(), true);
  EXPECT_EQ(got.indices, (Longs{13, 30, -1, -1, 18, 40, 41, -1}));
  EXPECT_EQ(got.counts, (Longs{2, 3}));
}

TEST_F(ConvertReqIndex, PrefillTokensReadTheWorkspaceWithinTheBlockTable) {
  Ints prefills = {-1, 1}, starts = {100, 200};
  ChosenPositions chosen = input();
  chosen.prefill_request_id = prefills.data();
  chosen.workspace_starts = starts.data();
  chosen.prefills = 2;
  positions[7] = 8;  // behind the last block
  EXPECT_EQ(convert_req_index_to_global(chosen, false).indices,
            (Longs{13, -1, 30, -1, 203, 204, 205, -1}));
  prefills[1] = 2;
  EXPECT_THROW(convert_req_index_to_global(chosen, false), std::out_of_range);
}

TEST_F(ConvertReqIndex, ARankTakesItsTurnsOfPositions) {
  ChosenPositions chosen = input();
  chosen.dcp_size = 2;
  chosen.dcp_rank = 1;
  chosen.dcp_interleave = 2;
  // Positions 2, 3, 6, 7, 10, 11, 14, 15 are the rank's own positions 0 to 7.
  positions = {2, 4, 7, 15, /**/ 1, 11, 18, 14};
  EXPECT_EQ(convert_req_index_to_global(chosen, false).indices,
            (Longs{6 * 5, -1, 6 * 5 + 3, 2 * 5 + 3, -1, 8 * 5 + 1, -1, 8 * 5 + 2}));
}

TEST(ConvertReqIndexLauncher, RefusesImpossibleArguments) {
  using P = plumb_convert_req_index_to_global_params;
  const auto launched = [](void (*spoil)(P&)) {
    P p{};
    p.topk = p.token_indices_row_stride = p.global_indices_row_stride = 1;
    p.block_size = p.block_stride_rows = p.dcp_size = p.dcp_interleave = 1;
    spoil(p);
    return device::kernels::convert_req_index_to_global().launch(&p);
  };
  EXPECT_EQ(launched([](P&) {}), PLUMB_OK);  // no tokens
  for (void (*spoil)(P&) :
       {+[](P& p) { p.topk = 0; }, +[](P& p) { p.tokens = 1; }, +[](P& p) { p.prefills = 1; },
        +[](P& p) { p.block_stride_rows = 0; }, +[](P& p) { p.dcp_rank = 1; },
        +[](P& p) { p.dcp_interleave = 2; }, +[](P& p) { p.global_indices_row_stride = 0; }}) {
    EXPECT_EQ(launched(spoil), PLUMB_INVALID_ARGUMENT);
  }
  EXPECT_EQ(device::kernels::convert_req_index_to_global().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace convert_req_index_test
}  // namespace plumb::reference
