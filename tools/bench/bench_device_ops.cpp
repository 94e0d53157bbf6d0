// SPDX-License-Identifier: Apache-2.0
//
// Rows in production shapes: V4-Pro with 8192 tokens, cache writers with 256 K tokens, top-k over
// rows of 32 K scores.
#include "tools/bench/bench_device.h"

namespace plumb::tools {

namespace {

constexpr Target kMostOfFloor{.least = 0.8}, kHalfOfFloor{.least = 0.5},
    kThirdOfFloor{.least = 0.3};
constexpr std::int64_t kTokens = 8192, kHidden = 7168, kWritten = 256 << 10;
constexpr std::int64_t kColumns = 32 << 10, kTopK = 1024;

// Consecutive tokens of a request fill whole blocks, as in engines.
DeviceOp writer(std::string_view op) {
  return {.op = op,
          .target = kMostOfFloor,
          .integers = {{"tokens", kWritten}, {"page", 64}},
          .words = {{"slots", "whole_blocks"}}};
}

DeviceOp stream_op(std::string_view op, Target target, bool multiplies_matrices) {
  return {.op = op,
          .target = target,
          .multiplies_matrices = multiplies_matrices,
          .integers = {{"tokens", kTokens}, {"hidden", kHidden}}};
}

}  // namespace

std::vector<DeviceOp> device_ops() {
  return {
      stream_op("rms_norm", kMostOfFloor, false),
      stream_op("fused_add_rms_norm", kMostOfFloor, false),
      stream_op("mtp_input_rms_norm", kMostOfFloor, false),
      stream_op("mtp_shared_head_rms_norm", kMostOfFloor, false),
      // Row distances as if both latents were parts of the rows of one product.
      {.op = "q_kv_rms_norm",
       .target = kMostOfFloor,
       .integers = {{"tokens", kTokens}, {"q_gap", 512}, {"kv_gap", 1536}}},
      {.op = "q_head_rms_norm_rope",
       .target = kMostOfFloor,
       .integers = {{"tokens", kTokens}, {"heads", 128}}},
      {.op = "mhc_pre",
       .target = kHalfOfFloor,
       .multiplies_matrices = true,
       .integers = {{"tokens", kTokens}, {"hidden", kHidden}, {"fused_norm", 1}}},
      stream_op("mhc_post", kMostOfFloor, false),
      stream_op("hc_head", kMostOfFloor, true),
      writer("quantize_and_insert_k_cache"),
      writer("concat_and_cache_ds_mla"),
      writer("indexer_k_quant_and_cache"),
      {.op = "top_k_per_row_prefill",
       .target = kHalfOfFloor,
       .integers = {{"rows", kTokens}, {"length", kColumns}, {"k", kTopK}}},
      {.op = "top_k_per_row_decode",
       .target = kHalfOfFloor,
       .integers = {{"requests", kTokens}, {"length", kColumns}, {"k", kTopK}}},
      {.op = "top_k_per_row_decode",
       .shape = "256 K columns",
       .target = kThirdOfFloor,
       .integers = {{"requests", 1024}, {"length", 256 << 10}, {"k", kTopK}}},
      {.op = "sparse_mla_decode",
       .target = {},
       .multiplies_matrices = true,
       .integers = {{"requests", 256}, {"heads", 128}, {"width", 128}, {"extra_width", 1024}}},
  };
}

}  // namespace plumb::tools
