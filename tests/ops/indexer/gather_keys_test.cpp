// SPDX-License-Identifier: Apache-2.0
//
// Tests cp_gather_indexer_k_quant_cache: the reference against offsets computed by hand, and what
// plumb's launcher refuses.
#include <gtest/gtest.h>
#include <plumb/ops/indexer.h>

#include <vector>

#include "device/device.h"
#include "reference/indexer/cp_gather_indexer_k_quant_cache.h"

namespace plumb::device::kernels {
device::OpEntry cp_gather_indexer_k_quant_cache();
}  // namespace plumb::device::kernels

namespace plumb::cases {
namespace gather_keys_test {

using Bytes = std::vector<std::uint8_t>;

// Cache bytes in which every byte differs from its neighbours.
Bytes cache_of(std::int64_t bytes) {
  Bytes cache;
  for (std::int64_t i = 0; i < bytes; ++i) cache.push_back(static_cast<std::uint8_t>(i * 37 + 11));
  return cache;
}

TEST(GatherKeys, PlanarKeysByHand) {
  // Pages of 2 keys, each 3 codes and a 4-byte scale, and 4 bytes of padding: block stride 18
  // bytes.
  const Bytes cache = cache_of(18 * 4);
  const std::int32_t table[] = {3, 1, /**/ -1, -1, /**/ 2, -1}, starts[] = {0, 3, 3, 4};
  reference::IndexerKeyGather inputs{cache.data(), 18, {2, 3, 3, false}, table, starts};
  inputs.requests = 3;
  inputs.keys = 6;
  inputs.block_table_row_stride = 2;
  const reference::GatheredIndexerKeys got = cp_gather_indexer_k_quant_cache(inputs);
  EXPECT_EQ(got.written, (std::vector<bool>{true, true, true, true, false, false}));
  const std::int64_t first_codes[] = {54, 57, 18, 36}, first_scales[] = {60, 64, 24, 42};
  for (std::int64_t key = 0; key < 4; ++key) {
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got.codes[key * 3 + i], cache[first_codes[key] + i]);
    }
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(got.scales[key * 4 + i], cache[first_scales[key] + i]);
    }
  }
}

TEST(GatherKeys, ShuffledKeysByHand) {
  // One page of 32 keys of 32 codes. Byte d of key o is at (o / 16) 512 + (d / 16) 256 + (o % 16)
  // 16 + d % 16.
  const Bytes cache = cache_of(32 * 36);
  const std::int32_t table[] = {0}, starts[] = {0, 32};
  reference::IndexerKeyGather inputs{cache.data(), 32 * 36, {32, 32, 32, true}, table, starts};
  inputs.requests = inputs.block_table_row_stride = 1;
  inputs.keys = 32;
  const reference::GatheredIndexerKeys got = cp_gather_indexer_k_quant_cache(inputs);
  for (std::int64_t o = 0; o < 32; ++o) {
    for (std::int64_t d = 0; d < 32; ++d) {
      EXPECT_EQ(got.codes[o * 32 + d], cache[o / 16 * 512 + d / 16 * 256 + o % 16 * 16 + d % 16]);
    }
    EXPECT_EQ(got.scales[o * 4], cache[1024 + o * 4]);
  }
}

TEST(GatherKeys, TokenToSeqLeavesRowsOut) {
  const Bytes cache = cache_of(64);
  const std::int32_t table[] = {0, 1, /**/ 2, 3}, starts[] = {0, 2, 4};
  // token_to_seq leaves out rows 1, 2, 4 and 5: their request does not exist, or its range of
  // cu_seq_lens does not hold the row.
  const std::int32_t requests[] = {0, -1, 0, 1, 1, 2};
  reference::IndexerKeyGather inputs{cache.data(), 16, {1, 4, 4, false}, table, starts, requests};
  inputs.requests = inputs.block_table_row_stride = 2;
  inputs.keys = 6;
  const reference::GatheredIndexerKeys got = cp_gather_indexer_k_quant_cache(inputs);
  EXPECT_EQ(got.written, (std::vector<bool>{true, false, false, true, false, false}));
  EXPECT_EQ(got.codes[3 * 4], cache[3 * 16]);
}

TEST(GatherKeysKernel, RefusesWhatTheContractForbids) {
  const auto device = device::open_device("sim-sm90");
  const device::OpEntry entry = device::kernels::cp_gather_indexer_k_quant_cache();
  std::int32_t integers[8] = {};
  Bytes cache(64 * 132), k(256), k_scale(8);
  const auto status = [&](auto change) {
    plumb_cp_gather_indexer_k_quant_cache_params p{};
    p.struct_size = sizeof p;
    p.cache = {cache.data(), 64 * 132, 1, 64, PLUMB_E4M3FN};
    p.block_table = p.cu_seq_lens = integers;
    p.k = k.data();
    p.k_scale = k_scale.data();
    p.requests = p.pages = p.block_table_row_stride = 1;
    p.keys = 2;
    p.head_dim = p.quant_block_size = p.k_row_stride = 128;
    p.k_scale_row_stride = 4;
    p.stream = device->create_stream();
    change(p);
    return entry.launch(&p);
  };
  EXPECT_EQ(status([](auto&) {}), PLUMB_OK);
  EXPECT_EQ(status([](auto& p) { p.keys = -1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.quant_block_size = 48; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.cache.block_stride_bytes -= 4; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.k_row_stride = 127; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.k_scale_row_stride = 3; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.block_table_row_stride = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.k_scale = nullptr; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.request_of_key = PLUMB_REQUEST_BY_TOKEN_TO_SEQ; }),
            PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.shuffled = 1, p.cache.page = 8; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](auto& p) { p.requests = 0; }), PLUMB_OK);
}

}  // namespace gather_keys_test
}  // namespace plumb::cases
