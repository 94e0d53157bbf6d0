// SPDX-License-Identifier: Apache-2.0
//
// Tests the references of the metadata ops against results computed by hand from docs/operations,
// and against identities.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "reference/metadata/build_ragged_indices_from_dense.h"
#include "reference/metadata/c128a_decode_metadata.h"
#include "reference/metadata/combine_topk_swa_indices_ragged.h"
#include "reference/metadata/compute_global_topk_indices_and_lens.h"
#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"
#include "reference/metadata/copy_ragged_to_graph_buffers.h"
#include "reference/metadata/pack_seq.h"
#include "reference/metadata/swa_decode_metadata.h"
#include "reference/metadata/unpack_seq.h"
#include "reference/metadata/v32_paged_kv_indices.h"
#include "reference/metadata/v32_paged_metadata.h"

namespace plumb::reference {
namespace metadata_test {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

TEST(BuildRagged, LengthsAreClampedAndHolesStay) {
  const Ints indices = {10, -1, 12, 99, 20, 21, 22, 99, 30, 31, 32};  // rows of 3, stride 4
  const Ints lengths = {2, -5, 9};
  const RaggedIndices free =
      build_ragged_indices_from_dense({indices.data(), lengths.data(), 3, 3, 4, -1, false});
  EXPECT_EQ(free.indptr, (Longs{0, 2, 2, 5}));
  EXPECT_EQ(free.flat, (Longs{10, -1, 30, 31, 32}));
  const RaggedIndices bounded =
      build_ragged_indices_from_dense({indices.data(), lengths.data(), 3, 3, 4, 31, false});
  EXPECT_EQ(bounded.flat, (Longs{10, -1, 30, -1, -1}));
}

TEST(BuildRagged, DroppedHolesLeaveNoGap) {
  const Ints indices = {10, -1, 12, 99, 20, 21, 22, 99, 30, 31, -7};  // rows of 3, stride 4
  const Ints lengths = {3, -5, 9};
  const RaggedIndices free =
      build_ragged_indices_from_dense({indices.data(), lengths.data(), 3, 3, 4, -1, true});
  EXPECT_EQ(free.indptr, (Longs{0, 2, 2, 4}));
  EXPECT_EQ(free.flat, (Longs{10, 12, 30, 31}));
  const RaggedIndices bounded =
      build_ragged_indices_from_dense({indices.data(), lengths.data(), 3, 3, 4, 31, true});
  EXPECT_EQ(bounded.flat, (Longs{10, 12, 30}));
}

TEST(BuildRagged, AnyNegativePassesWithoutABoundAndNoneWithBoundZero) {
  const Ints indices = {-7, 0}, lengths = {2};
  EXPECT_EQ(
      build_ragged_indices_from_dense({indices.data(), lengths.data(), 1, 2, 2, -1, false}).flat,
      (Longs{-7, 0}));
  EXPECT_EQ(
      build_ragged_indices_from_dense({indices.data(), lengths.data(), 1, 2, 2, 0, false}).flat,
      (Longs{-1, -1}));
}

TEST(BuildRagged, OfFullRowsIsTheFlattening) {
  Ints indices(35);
  std::iota(indices.begin(), indices.end(), 100);
  const Ints lengths(5, 7);
  const RaggedIndices ragged =
      build_ragged_indices_from_dense({indices.data(), lengths.data(), 5, 7, 7, -1});
  EXPECT_EQ(ragged.flat, Longs(indices.begin(), indices.end()));
  EXPECT_EQ(ragged.indptr, (Longs{0, 7, 14, 21, 28, 35}));
}

TEST(CopyRagged, TailsOfBothBuffersStay) {
  const Ints indices = {1, 2, 3, 55}, indptr = {0, 1, 3};
  GraphBuffers buffers{{7, 7, 7, 7, 7, 7}, {9, 9, 9, 9, 9}};
  copy_ragged_to_graph_buffers(indices.data(), 3, indptr.data(), 2, buffers);
  EXPECT_EQ(buffers.indices, (Longs{1, 2, 3, 7, 7, 7}));
  EXPECT_EQ(buffers.indptr, (Longs{0, 1, 3, 9, 9}));
}

// Two requests, blocks of two: request 0 has blocks 5 and 9, request 1 has 4 and 3.
class GlobalTopK : public testing::Test {
 protected:
  TopKPositions input() const {
    return {topk.data(), 3, 3, 3, token_to_req.data(), valid.data(), {blocks.data(), 2, 2, 2, 2}};
  }
  Ints blocks = {5, 9, 4, 3};
  Ints topk = {0, 3, -1, 1, -1, 2, 0, 1, 2};
  Ints token_to_req = {1, 0, 0};
  std::vector<std::uint8_t> valid = {1, 1, 0};
};

TEST_F(GlobalTopK, RaggedTakesAPrefixAndLosesWhatStandsBehindAHole) {
  const RaggedSlots slots = compute_global_topk_ragged_indices_and_indptr(input());
  EXPECT_EQ(slots.lens, (Longs{2, 2, 0}));
  EXPECT_EQ(slots.indptr, (Longs{0, 2, 4, 4}));
  EXPECT_EQ(slots.flat, (Longs{8, 7, 11, -1}));
}

TEST_F(GlobalTopK, DenseKeepsColumns) {
  const DenseSlots slots = compute_global_topk_indices_and_lens(input(), false);
  EXPECT_EQ(slots.lens, (Longs{2, 2, 0}));
  EXPECT_EQ(slots.global_indices, (Longs{8, 7, -1, 11, -1, 18, -1, -1, -1}));
}

TEST_F(GlobalTopK, DenseMovesSlotsToTheLeft) {
  const DenseSlots slots = compute_global_topk_indices_and_lens(input(), true);
  EXPECT_EQ(slots.lens, (Longs{2, 2, 0}));
  EXPECT_EQ(slots.global_indices, (Longs{8, 7, -1, 11, 18, -1, -1, -1, -1}));
}

TEST_F(GlobalTopK, DenseDropsWhatTheBlockTableDoesNotCover) {
  topk = {4, 3, 2147483647, 1, 0, 2, 0, 1, 2};  // position 4: past the table's two blocks
  token_to_req = {1, 2, -1};
  valid = {1, 1, 1};
  const DenseSlots slots = compute_global_topk_indices_and_lens(input(), true);
  EXPECT_EQ(slots.lens, (Longs{1, 0, 0}));
  EXPECT_EQ(slots.global_indices, (Longs{7, -1, -1, -1, -1, -1, -1, -1, -1}));
}

TEST_F(GlobalTopK, RaggedRefusesWhatTheBlockTableDoesNotCover) {
  topk[0] = 4;
  EXPECT_THROW(compute_global_topk_ragged_indices_and_indptr(input()), std::out_of_range);
}

TEST_F(GlobalTopK, OtherBlocksMoveSlotsByWholeBlocks) {
  topk = {0, 3, 1, 1, 2, 2, 0, 1, 2};
  valid = {1, 1, 1};
  const Longs before = compute_global_topk_ragged_indices_and_indptr(input()).flat;
  for (std::int32_t& block : blocks) block = 100 - block;
  const Longs after = compute_global_topk_ragged_indices_and_indptr(input()).flat;
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i], (100 - before[i] / 2) * 2 + before[i] % 2);
  }
}

TEST_F(GlobalTopK, TheHighestSlotIsAnInt) {
  blocks = {1073741823, 0, 0, 0};
  topk = {1, 0, -1, -1, -1, -1, -1, -1, -1};
  token_to_req = {0, 0, 0};
  EXPECT_EQ(compute_global_topk_ragged_indices_and_indptr(input()).flat,
            (Longs{2147483647, 2147483646}));
}

// Ratio 4, at most two states, a window of 3. Each request has 20 workspace rows, 8 of them for
// compressed states. Requests have 2 and 1 query tokens; the chunk starts at token 5 of the batch.
class Combine : public testing::Test {
 protected:
  ChunkLists input() const {
    ChunkLists chunk;
    chunk.queries = {starts.data(), seq_lens.data(), 2};
    chunk.gather_lens = gather_lens.data();
    chunk.topk_indices = topk.data();
    chunk.tokens = 4;
    chunk.topk_width = chunk.topk_indices_row_stride = width;
    chunk.top_k = 2;
    chunk.ratio = 4;
    chunk.window = 3;
    chunk.rows_per_request = 20;
    chunk.compressed_rows = 8;
    chunk.shift_minus_one = shifted;
    return chunk;
  }
  Ints starts = {5, 7, 8}, seq_lens = {10, 2}, gather_lens = {4, 2};
  Ints topk = {1, 0, -1, 1, 50, 60, 70, 80};
  std::int64_t width = 2;
  bool shifted = false;
};

TEST_F(Combine, StatesThenWindowInTheRequestsOwnRegion) {
  const RaggedSlots rows = combine_topk_swa_indices_ragged(input());
  EXPECT_EQ(rows.lens, (Longs{5, 5, 2, 0}));
  EXPECT_EQ(rows.indptr, (Longs{0, 5, 10, 12, 12}));
  // Tokens at positions 8, 9 and 1. The first request gathered from position 6 on.
  EXPECT_EQ(rows.flat, (Longs{1, 0, 8, 9, 10, -1, 1, 9, 10, 11, 28, 29}));
}

TEST_F(Combine, AHoleOfALaterRequestIsNoRowOfTheOneBefore) {
  seq_lens = {10, 9};
  gather_lens = {4, 3};
  topk = {1, 0, 1, 0, -1, 1, 0, 0};
  const RaggedSlots rows = combine_topk_swa_indices_ragged(input());
  EXPECT_EQ(Longs(rows.flat.begin() + 10, rows.flat.end()), (Longs{-1, 21, 28, 29, 30}));
  shifted = true;
  EXPECT_EQ(combine_topk_swa_indices_ragged(input()).flat[10], 19);
}

TEST_F(Combine, StatesWithoutAColumnAreMissing) {
  width = 1;
  topk = {1, 1, 7, 7};
  const RaggedSlots rows = combine_topk_swa_indices_ragged(input());
  EXPECT_EQ(Longs(rows.flat.begin(), rows.flat.begin() + 5), (Longs{1, kMissingState, 8, 9, 10}));
  EXPECT_EQ(rows.lens, (Longs{5, 5, 2, 0}));
}

TEST_F(Combine, AWindowThatWasNotGatheredIsRefused) {
  gather_lens = {3, 2};
  EXPECT_THROW(combine_topk_swa_indices_ragged(input()), std::out_of_range);
}

TEST(GatherLen, IsTheQueriesAndTheirFirstWindow) {
  EXPECT_EQ(prefill_gather_len(1000, 8, 128), 8 + 127);
  EXPECT_EQ(prefill_gather_len(100, 8, 128), 100);
  EXPECT_EQ(prefill_gather_len(8, 8, 128), 8);
}

// A window of 3 over pages of two. Request 0 has tokens at positions 3 and 4, request 1 at position
// 0.
TEST(SwaMetadata, SlotsLensAndRequests) {
  const Ints starts = {0, 2, 3}, seq_lens = {5, 1}, blocks = {7, 1, 4, 2, 0, 0};
  const Longs slot_mapping = {0, -1, 5, -1};
  const SwaMetadata swa = swa_decode_metadata({{starts.data(), seq_lens.data(), 2},
                                               slot_mapping.data(),
                                               4,
                                               3,
                                               {blocks.data(), 2, 3, 3, 2}});
  EXPECT_EQ(swa.swa_lens, (Longs{3, 0, 1, 0}));
  EXPECT_EQ(swa.token_to_req, (Longs{0, 0, 1, 0}));
  EXPECT_EQ(swa.is_valid_token, (Longs{1, 0, 1, 0}));
  EXPECT_EQ(swa.swa_indices, (Longs{15, 2, 3, -1, -1, -1, 4, -1, -1, -1, -1, -1}));
  EXPECT_EQ(swa.gather_lens, (Longs{4, 1}));
}

TEST(SwaMetadata, AWindowOf128TouchesThreePagesOf64) {
  const Ints starts = {0, 1}, seq_lens = {131}, blocks = {10, 30, 20};
  const Longs slot_mapping = {1};
  const SwaMetadata swa = swa_decode_metadata({{starts.data(), seq_lens.data(), 1},
                                               slot_mapping.data(),
                                               1,
                                               128,
                                               {blocks.data(), 1, 3, 3, 64}});
  EXPECT_EQ(swa.swa_lens, (Longs{128}));
  EXPECT_EQ(swa.swa_indices.front(), 10 * 64 + 3);
  EXPECT_EQ(swa.swa_indices[60], 10 * 64 + 63);
  EXPECT_EQ(swa.swa_indices[61], 30 * 64);
  EXPECT_EQ(swa.swa_indices.back(), 20 * 64 + 2);
}

TEST(C128aMetadata, StatesAreSeenFromTheirLastTokenOn) {
  const Longs positions = {126, 127, 383, 383, 2000, 600, 255};
  const Longs slot_mapping = {0, 0, 0, -1, 3, 0, -1};
  const Ints token_to_req(7, 0), blocks = {3, 8};
  const C128aMetadata c128a = c128a_decode_metadata({positions.data(),
                                                     slot_mapping.data(),
                                                     token_to_req.data(),
                                                     5,
                                                     2,
                                                     4,
                                                     {blocks.data(), 1, 2, 2, 2}});
  EXPECT_EQ(c128a.decode_lens, (Longs{0, 1, 3, 0, 4}));
  EXPECT_EQ(c128a.decode_slots,
            (Longs{-1, -1, -1, -1, 6, -1, -1, -1, 6, 7, 16, -1, -1, -1, -1, -1, 6, 7, 16, 17}));
  EXPECT_EQ(c128a.prefill_indices, (Longs{0, 1, 2, 3, 0, 1, -1, -1}));
}

TEST(V32Metadata, AShrinkingStepClearsExactlyWhatTheLastOneReached) {
  const Ints starts = {0, 2, 3}, seq_lens = {5, 0};
  PagedBuffers buffers{Longs(5, 8), {}, Longs(20, 9), {4, 12}};
  v32_paged_metadata({starts.data(), seq_lens.data(), 2}, 4, ClearedExtent::entries, buffers);
  EXPECT_EQ(buffers.req_id_per_token, (Longs{0, 0, 1, 0, 8}));
  EXPECT_EQ(buffers.paged_kv_indptr, (Longs{0, 4, 8, 8, 8, 8}));
  EXPECT_EQ(buffers.paged_kv_indices,
            (Longs{9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(buffers.extents, (Longs{3, 8}));
}

TEST(QueryTokens, AreAtMostThoseThatAreAskedFor) {
  const Ints starts = {0, 1, 0x7fffffff}, seq_lens = {1, 9};
  EXPECT_EQ(query_tokens({starts.data(), seq_lens.data(), 2}, 3).size(), 3U);
}

TEST(V32Metadata, MoreTokensThanTheBufferHasAreRefused) {
  const Ints starts = {0, 5}, seq_lens = {5};
  PagedBuffers buffers{Longs(4, 8), {}, Longs(20, 9), {0, 0}};
  EXPECT_THROW(
      v32_paged_metadata({starts.data(), seq_lens.data(), 1}, 4, ClearedExtent::entries, buffers),
      std::out_of_range);
}

TEST(V32Metadata, AGrowingStepClearsNothing) {
  const Ints starts = {0, 3}, seq_lens = {3};
  PagedBuffers buffers{Longs(4, 8), {}, Longs(8, 9), {1, 2}};
  v32_paged_metadata({starts.data(), seq_lens.data(), 1}, 2, ClearedExtent::entries, buffers);
  EXPECT_EQ(buffers.req_id_per_token, (Longs{0, 0, 0, 8}));
  EXPECT_EQ(buffers.paged_kv_indptr, (Longs{0, 1, 3, 5, 5}));
  EXPECT_EQ(buffers.paged_kv_indices, Longs(8, 9));
  EXPECT_EQ(buffers.extents, (Longs{3, 5}));
}

TEST(V32Metadata, TheExtentOfTopKReachesBehindTheEntries) {
  const Ints starts = {0, 2}, seq_lens = {2};
  PagedBuffers buffers{Longs(4, 8), {}, Longs(16, 9), {3, 12}};
  v32_paged_metadata({starts.data(), seq_lens.data(), 1}, 4, ClearedExtent::n_topk, buffers);
  EXPECT_EQ(buffers.req_id_per_token, (Longs{0, 0, 0, 8}));
  EXPECT_EQ(buffers.paged_kv_indices, (Longs{9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 9, 9, 9, 9}));
  EXPECT_EQ(buffers.extents, (Longs{2, 8}));
}

TEST(V32Metadata, AFullFillClearsLiveEntriesToo) {
  const Ints starts = {0, 2}, seq_lens = {2};
  PagedBuffers buffers{Longs(4, 8), {}, Longs(16, 9), {0, 0}};
  v32_paged_metadata({starts.data(), seq_lens.data(), 1}, 4, ClearedExtent::full_fill, buffers);
  EXPECT_EQ(buffers.req_id_per_token, Longs(4, 0));
  EXPECT_EQ(buffers.paged_kv_indptr, (Longs{0, 1, 3, 3, 3}));
  EXPECT_EQ(buffers.paged_kv_indices, Longs(16, 0));
}

TEST(V32Indices, MissingTokensAreSlot0OrMinusOne) {
  const Ints topk = {0, 3, -1, 4, 1, 1, 1, 1}, requests = {0, 0}, indptr = {0, 4, 5};
  const Ints blocks = {3, 4};
  Longs indices(7, 5);
  PagedTopK input{topk.data(), requests.data(), indptr.data(), 2, 4, {blocks.data(), 1, 2, 2, 2}};
  v32_paged_kv_indices(input, indices);
  EXPECT_EQ(indices, (Longs{6, 9, 0, 0, 7, 5, 5}));
  input.missing = -1;
  v32_paged_kv_indices(input, indices);
  EXPECT_EQ(indices, (Longs{6, 9, -1, -1, 7, 5, 5}));
}

TEST(PackSeq, RowsAndTheirTokens) {
  EXPECT_EQ(pack_seq({2, 0, 1}, 2), (Longs{0, 1, -1, -1, 2, -1}));
  EXPECT_EQ(unpack_seq({2, 0, 1}, 2), (Longs{0, 1, 4}));
  EXPECT_THROW(pack_seq({3}, 2), std::invalid_argument);
  EXPECT_THROW(unpack_seq({-1}, 2), std::invalid_argument);
}

TEST(PackSeq, UnpackingWhatWasPackedIsTheIdentity) {
  const Longs lengths = {3, 0, 5, 1, 4};
  const Longs packed = pack_seq(lengths, 6), rows = unpack_seq(lengths, 6);
  ASSERT_EQ(rows.size(), 13u);
  for (std::int64_t token = 0; token < 13; ++token) EXPECT_EQ(packed[rows[token]], token);
}

}  // namespace metadata_test
}  // namespace plumb::reference
