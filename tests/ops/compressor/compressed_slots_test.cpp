// SPDX-License-Identifier: Apache-2.0
//
// Tests compressed_slot_mapping: its reference against results computed by hand from
// docs/operations, and what its launcher refuses.
#include <gtest/gtest.h>
#include <plumb/ops/compressor.h>

#include <vector>

#include "device/op_entry.h"
#include "reference/compressor/compressed_slot_mapping.h"

namespace plumb::device::kernels {
device::OpEntry compressed_slot_mapping();
}

namespace plumb::reference {
namespace compressed_slots_test {

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

// Groups of 4 positions, blocks of 2 states. Request 0 has positions 6 to 8, request 1 has none,
// request 2 has position 11, and request 3 (a dummy) has position -1.
struct SmallBatch {
  Ints starts = {0, 3, 3, 4, 5}, seq_lens = {9, 0, 12, 0};
  Ints blocks = {7, 5, 99, 99, 99, 99, 3, 8, 99, 99, 99, 99};  // rows of 2, 3 apart
  Longs own = {10, 11, 12, 13, -1};

  CompressedSlotBatch input() const {
    CompressedSlotBatch batch;
    batch.queries = {starts.data(), seq_lens.data(), 4};
    batch.slot_mapping = own.data();
    batch.tokens = 5;
    batch.buffer_tokens = 7;
    batch.ratio = 4;
    batch.block_table = {blocks.data(), 4, 2, 3, 2};
    return batch;
  }
};

// Position 7 closes state 1, in block 7 at offset 1. Position 11 closes state 2, in block 8.
TEST(CompressedSlots, LieAtTheLastTokenOfAGroup) {
  const SmallBatch batch;
  EXPECT_EQ(compressed_slot_mapping(batch.input()), (Longs{-1, 15, -1, 16, -1, -1, -1}));
}

TEST(CompressedSlots, NeedASlotOfTheirOwnUnlessItIsIgnored) {
  SmallBatch batch;
  batch.own[1] = -1;
  EXPECT_EQ(compressed_slot_mapping(batch.input())[1], -1);
  CompressedSlotBatch ignored = batch.input();
  ignored.slot_mapping = nullptr;
  EXPECT_EQ(compressed_slot_mapping(ignored), (Longs{-1, 15, -1, 16, -1, -1, -1}));
}

// A prompt in chunks of 1, 2, 3, ... tokens gets the same slots as the whole prompt.
TEST(CompressedSlots, DoNotDependOnChunks) {
  const Ints blocks = {4, 9, 2, 6};
  const auto slots_of = [&](std::int32_t first, std::int32_t count) {
    const Ints starts = {0, count}, seq_lens = {first + count};
    CompressedSlotBatch batch;
    batch.queries = {starts.data(), seq_lens.data(), 1};
    batch.tokens = batch.buffer_tokens = count;
    batch.ratio = 4;
    batch.block_table = {blocks.data(), 1, 4, 4, 3};
    return compressed_slot_mapping(batch);
  };
  const Longs whole = slots_of(0, 45);
  Longs chunks;
  for (std::int32_t first = 0, count = 1; first < 45; first += count++) {
    const Longs chunk = slots_of(first, count);
    chunks.insert(chunks.end(), chunk.begin(), chunk.end());
  }
  EXPECT_EQ(chunks, whole);
  EXPECT_EQ(whole[3], 12);
  EXPECT_EQ(whole[43], 19);  // state 10: offset 1 of the fourth block of states, whose number is 6
}

TEST(CompressedSlots, ImpossibleArgumentsAreRefused) {
  const auto status = [](auto spoil) {
    plumb_compressed_slot_mapping_params params{};
    params.ratio = params.page = 1;
    spoil(params);
    return device::kernels::compressed_slot_mapping().launch(&params);
  };
  using P = plumb_compressed_slot_mapping_params;
  EXPECT_EQ(status([](P&) {}), PLUMB_OK);
  EXPECT_EQ(status([](P& p) { p.ratio = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.page = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.tokens = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.buffer_tokens = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(device::kernels::compressed_slot_mapping().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace compressed_slots_test
}  // namespace plumb::reference
