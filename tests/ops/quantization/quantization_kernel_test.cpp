// SPDX-License-Identifier: Apache-2.0
//
// Tests what the launchers of the quantisers and of the cache writers refuse. Their results are
// tested by cases.
#include <gtest/gtest.h>
#include <plumb/ops/cache.h>
#include <plumb/ops/quantization.h>

#include "device/device.h"

namespace plumb::device::kernels {
device::OpEntry per_token_group_quant_fp8();
device::OpEntry mxfp4_quant();
device::OpEntry normalize_e4m3fn_to_e4m3fnuz();
device::OpEntry quantize_and_insert_k_cache();
device::OpEntry concat_and_cache_ds_mla();
device::OpEntry indexer_k_quant_and_cache();
}  // namespace plumb::device::kernels

namespace plumb::device {
namespace quantization_kernel_test {

// Inputs of the calls below. A refused or empty call reads no input, so one element is enough.
std::uint16_t nothing[1];
std::uint8_t no_bytes[1];
std::int64_t no_slots[1];

template <class Params, class Change>
plumb_status after(const device::OpEntry& entry, Params params, const Change& change) {
  change(params);
  return entry.launch(&params);
}

TEST(QuantisationLaunchers, RefuseGroupsWithoutAFloor) {
  const device::OpEntry entry = kernels::per_token_group_quant_fp8();
  plumb_per_token_group_quant_fp8_params legal{};
  legal.columns = legal.x_row_stride = 100;
  legal.group_size = 128;
  legal.dialect = PLUMB_E4M3FN;
  legal.amax_floor = 1e-10F;
  EXPECT_EQ(entry.launch(&legal), PLUMB_OK);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.amax_floor = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.dialect = PLUMB_BF16; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.group_size = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.x_row_stride = 99; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.tokens = 1; }), PLUMB_INVALID_ARGUMENT);
}

TEST(QuantisationLaunchers, RefuseHalfAGroupOfMxfp4) {
  const device::OpEntry entry = kernels::mxfp4_quant();
  plumb_mxfp4_quant_params legal{};
  legal.columns = legal.x_row_stride = 64;
  legal.q_row_stride = 32;
  legal.scales_row_stride = 2;
  legal.amax_floor = 1e-4F;
  EXPECT_EQ(entry.launch(&legal), PLUMB_OK);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.columns = 48; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.q_row_stride = 31; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.scales_row_stride = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.amax_floor = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.tokens = 1; }), PLUMB_INVALID_ARGUMENT);
}

TEST(QuantisationLaunchers, RefuseScalesWithoutAPlace) {
  const device::OpEntry entry = kernels::normalize_e4m3fn_to_e4m3fnuz();
  plumb_normalize_e4m3fn_to_e4m3fnuz_params legal{};
  legal.columns = legal.weight_row_stride = legal.weight_out_row_stride = 8;
  EXPECT_EQ(entry.launch(&legal), PLUMB_OK);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.rows = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.weight_scales = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.input_scales = 1; }), PLUMB_INVALID_ARGUMENT);
}

TEST(CacheWriterLaunchers, RefuseBlocksThatOverlap) {
  const device::OpEntry entry = kernels::quantize_and_insert_k_cache();
  plumb_quantize_and_insert_k_cache_params legal{};
  legal.kv = nothing;
  legal.slot_mapping = no_slots;
  legal.kv_row_stride = 512;
  legal.cache = {no_bytes, 64 * 584, 1, 64, PLUMB_E4M3FN};
  legal.amax_floor = 1e-4F;
  EXPECT_EQ(entry.launch(&legal), PLUMB_OK);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.cache.block_stride_bytes -= 2; }),
            PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.cache.page = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.kv_row_stride = 511; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.amax_floor = 0; }), PLUMB_INVALID_ARGUMENT);
}

TEST(CacheWriterLaunchers, RefuseScalesThatAreNotAligned) {
  const device::OpEntry entry = kernels::concat_and_cache_ds_mla();
  plumb_concat_and_cache_ds_mla_params legal{};
  legal.kv_c_row_stride = 512;
  legal.k_pe_row_stride = 64;
  legal.cache = {no_bytes, 656, 1, 1, PLUMB_E4M3FN};
  legal.scale_floor = 0x1p-126F;
  EXPECT_EQ(entry.launch(&legal), PLUMB_OK);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.cache.block_stride_bytes += 2; }),
            PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.cache.page = 2; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.scale_floor = 0; }), PLUMB_INVALID_ARGUMENT);
}

TEST(CacheWriterLaunchers, RefuseTilesThatDoNotFitThePage) {
  const device::OpEntry entry = kernels::indexer_k_quant_and_cache();
  plumb_indexer_k_quant_and_cache_params legal{};
  legal.head_dim = legal.quant_block_size = 128;
  legal.k_row_stride = 128;
  legal.shuffled = 1;
  legal.cache = {no_bytes, 32 * 132, 1, 32, PLUMB_E4M3FN};
  legal.amax_floor = 1e-4F;
  EXPECT_EQ(entry.launch(&legal), PLUMB_OK);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.cache.page = 24; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.cache.page = 1; }), PLUMB_OK);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.quant_block_size = 96; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.amax_floor = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(after(entry, legal, [](auto& p) { p.cache.block_stride_bytes -= 4; }),
            PLUMB_INVALID_ARGUMENT);
}

}  // namespace quantization_kernel_test
}  // namespace plumb::device
