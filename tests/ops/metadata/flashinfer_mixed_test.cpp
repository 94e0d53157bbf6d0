// SPDX-License-Identifier: Apache-2.0
//
// Tests build_flashinfer_mixed_sparse_indices: the reference against rows computed by hand from
// docs/operations, and what plumb's launcher refuses.
#include <gtest/gtest.h>
#include <plumb/ops/metadata.h>

#include <stdexcept>
#include <vector>

#include "device/device.h"
#include "reference/index_maps/build_flashinfer_mixed_sparse_indices.h"

namespace plumb::device::kernels {
device::OpEntry build_flashinfer_mixed_sparse_indices();
}  // namespace plumb::device::kernels

namespace plumb::reference {
namespace flashinfer_mixed_test {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;
constexpr std::int64_t kNegative = kAnyNegative;

// A decode token of request 0, then two prefill tokens of request 1 at positions 4 and 5, then a
// row of padding. Blocks of both caches have two slots. They are 5 slots apart in the cache of the
// window, and 3 in the compressed one.
class FlashInferMixed : public testing::Test {
 protected:
  MixedIndices rows() {
    MixedBatch batch;
    batch.decode_swa_indices = decode_swa.data();
    batch.decode_compressed_indices = decode_compressed.data();
    batch.decode_compressed_lens = lens.empty() ? nullptr : lens.data();
    batch.decode_is_valid_token = valid.empty() ? nullptr : valid.data();
    batch.prefill_topk_indices = topk.data();
    batch.token_to_req = requests.data();
    batch.queries = {starts.data(), seq_lens.data(), 2};
    batch.decode_tokens = 1;
    batch.prefill_tokens = 3;
    batch.decode_swa_row_stride = batch.window = 3;
    batch.decode_compressed_row_stride = batch.decode_topk = 2;
    batch.prefill_topk_row_stride = batch.top_k = 3;
    batch.ratio = 2;
    batch.width = 7;
    batch.swa = {{swa_blocks.data(), 2, 3, 3, 2}, 5};
    batch.compressed = {{blocks.data(), 2, 2, 2, 2}, 3};
    has_row = {batch.has_row(0), batch.has_row(1), batch.has_row(2), batch.has_row(3)};
    return build_flashinfer_mixed_sparse_indices(batch);
  }
  Longs row(std::int64_t token) {
    const Longs indices = rows().indices;
    return {indices.begin() + token * 7, indices.begin() + (token + 1) * 7};
  }

  Ints decode_swa = {9, 2, -1}, decode_compressed = {11, -1}, lens = {1};
  Ints topk = {2, -1, 9, /**/ 0, 1, 3, /**/ 99, 99, 99};
  Ints starts = {0, 1, 3}, seq_lens = {5, 6}, requests = {0, 1, 1, 0};
  Ints swa_blocks = {4, 1, 0, /**/ 2, 7, 3}, blocks = {5, 0, /**/ 6, 1};
  std::vector<std::uint8_t> valid;
  std::vector<bool> has_row;
};

TEST_F(FlashInferMixed, SlotsOfDecodeTokensCountTheDistanceOfBlocks) {
  EXPECT_EQ(row(0), (Longs{4 * 5 + 1, 1 * 5, -1, 5 * 3 + 1, -1, -1, -1}));
  EXPECT_EQ(rows().lens[0], 3 + 1);
  lens.clear();
  EXPECT_EQ(rows().lens[0], 3 + 2);
}

TEST_F(FlashInferMixed, PositionsOfDecodeTokensAreLookedUp) {
  lens.clear();
  valid = {1};
  decode_compressed = {1, 3};
  EXPECT_EQ(row(0), (Longs{21, 5, -1, 5 * 3 + 1, 0 * 3 + 1, -1, -1}));
  EXPECT_EQ(rows().lens[0], 3 + 2);
  decode_compressed = {-1, 3};  // a hole leaves its column, and is not counted
  EXPECT_EQ(row(0), (Longs{21, 5, -1, -1, 1, -1, -1}));
  EXPECT_EQ(rows().lens[0], 3 + 1);
  valid = {0};
  EXPECT_EQ(rows().lens[0], 3);
  EXPECT_EQ(has_row, (std::vector<bool>{false, true, true, false}));
}

TEST_F(FlashInferMixed, PrefillTokensHaveTheirWindowAndStates) {
  EXPECT_EQ(row(1), (Longs{7 * 5, 7 * 5 + 1, 3 * 5, 1 * 3, -1, -1, -1}));
  EXPECT_EQ(row(2), (Longs{36, 15, 16, 6 * 3, 6 * 3 + 1, 1 * 3 + 1, -1}));
  const Longs lengths = rows().lens;
  EXPECT_EQ(lengths[1], 3 + 2);  // a hole counts, and the third state does not exist yet
  EXPECT_EQ(lengths[2], 3 + 3);
  EXPECT_EQ(has_row, (std::vector<bool>{true, true, true, false}));
}

TEST_F(FlashInferMixed, TheFirstTokensOfASequenceHaveShortWindows) {
  seq_lens = {5, 2};
  topk[0] = 3;  // no state exists at position 0
  EXPECT_EQ(row(1), (Longs{2 * 5, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(row(2), (Longs{2 * 5, 2 * 5 + 1, -1, 6 * 3, -1, -1, -1}));
  const Longs lengths = rows().lens;
  EXPECT_EQ(lengths[1], 3);
  EXPECT_EQ(lengths[2], 3 + 1);
}

TEST_F(FlashInferMixed, BlocksBelow0MakeEntriesBelow0) {
  swa_blocks[4] = -1;
  blocks[3] = -2;
  EXPECT_EQ(row(1), (Longs{kNegative, kNegative, 15, kNegative, -1, -1, -1}));
  EXPECT_EQ(rows().lens[1], 3 + 2);
  decode_swa[1] = -5;
  EXPECT_EQ(row(0), (Longs{21, kNegative, -1, 16, -1, -1, -1}));
}

TEST_F(FlashInferMixed, StatesBehindTheBlockTableAreRefused) {
  topk[5] = 4;
  EXPECT_THROW(rows(), std::out_of_range);
  topk[5] = 3;
  requests[2] = 2;
  EXPECT_THROW(rows(), std::out_of_range);
}

TEST(FlashInferMixedLauncher, RefusesImpossibleArguments) {
  using P = plumb_build_flashinfer_mixed_sparse_indices_params;
  static const std::int32_t some[1] = {};
  static const std::uint8_t valid[1] = {};
  const auto launched = [](void (*spoil)(P&)) {
    P p{};
    p.window = p.ratio = p.swa_block_size = p.swa_block_span = 1;
    p.compressed_block_size = p.compressed_block_span = 1;
    p.top_k = 4;
    p.width = p.sparse_indices_row_stride = 5;
    p.compressed_block_table = some;
    spoil(p);
    return device::kernels::build_flashinfer_mixed_sparse_indices().launch(&p);
  };
  EXPECT_EQ(launched([](P&) {}), PLUMB_OK);  // no tokens
  for (void (*spoil)(P&) :
       {+[](P& p) { p.window = 0; }, +[](P& p) { p.ratio = 0; }, +[](P& p) { p.decode_tokens = 1; },
        +[](P& p) { p.prefill_tokens = 1; }, +[](P& p) { p.width = 4; },
        +[](P& p) { p.decode_topk = 5; }, +[](P& p) { p.sparse_indices_row_stride = 4; },
        +[](P& p) { p.swa_block_span = 0; }, +[](P& p) { p.compressed_block_size = 2; },
        +[](P& p) { p.compressed_block_table = nullptr; },
        +[](P& p) { p.decode_is_valid_token = valid; },  // of no compressed positions
        +[](P& p) {
          p.decode_topk = 1;
          p.decode_is_valid_token = valid;
          p.decode_compressed_lens = some;
        }}) {
    EXPECT_EQ(launched(spoil), PLUMB_INVALID_ARGUMENT);
  }
  EXPECT_EQ(device::kernels::build_flashinfer_mixed_sparse_indices().launch(nullptr),
            PLUMB_INVALID_ARGUMENT);
}

}  // namespace flashinfer_mixed_test
}  // namespace plumb::reference
