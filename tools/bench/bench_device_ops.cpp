// SPDX-License-Identifier: Apache-2.0
//
// Writers of caches, top-k and attention in the shapes of production: 256 K tokens for the writers,
// rows of 32 K scores. What each op must read and write once, and what it must calculate.
#include "tools/bench/bench_device_ops.h"

#include <plumb/ops/cache.h>
#include <plumb/ops/top_k.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "device/launch_state.h"
#include "reference/sparse_mla/tile_plan.h"

namespace plumb::tools {

namespace {

constexpr std::int64_t kWritten = 256 << 10, kPage = 64;

// ---- writers of caches ----

plumb_paged_cache make_cache(DeviceBed& bed, std::int64_t token_bytes) {
  plumb_paged_cache cache{};
  cache.block_stride_bytes = kPage * token_bytes;
  cache.num_blocks = kWritten / kPage;
  cache.data = bed.room<std::uint8_t>(kWritten * token_bytes);
  cache.page = kPage;
  cache.dialect = PLUMB_E4M3FN;
  return cache;
}

// As engines have it: tokens of a request follow one another within a block, blocks are scattered.
std::int64_t* make_slots(DeviceBed& bed) {
  std::vector<std::int64_t> blocks(kWritten / kPage), slots;
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937_64(7));
  for (const std::int64_t block : blocks) {
    for (std::int64_t offset = 0; offset < kPage; ++offset) slots.push_back(block * kPage + offset);
  }
  return bed.upload(slots);
}

DeviceLaunch make_quantize_and_insert(DeviceBed& bed, const device::OpEntry& entry) {
  plumb_quantize_and_insert_k_cache_params p{};
  p.kv = bed.bf16(kWritten * kLatent);
  p.slot_mapping = make_slots(bed);
  p.cache = make_cache(bed, 584);
  p.tokens = kWritten;
  p.kv_row_stride = kLatent;
  p.amax_floor = 1e-4F;
  return launch_of(entry, p);
}

DeviceLaunch make_concat_and_cache(DeviceBed& bed, const device::OpEntry& entry) {
  plumb_concat_and_cache_ds_mla_params p{};
  p.kv_c = bed.bf16(kWritten * kLatent);
  p.k_pe = bed.bf16(kWritten * kRope);
  p.slot_mapping = make_slots(bed);
  p.cache = make_cache(bed, 656);
  p.tokens = kWritten;
  p.kv_c_row_stride = kLatent;
  p.k_pe_row_stride = kRope;
  p.scale_floor = 0x1p-126F;
  return launch_of(entry, p);
}

DeviceLaunch make_indexer_k_quant(DeviceBed& bed, const device::OpEntry& entry) {
  constexpr std::int32_t kIndexerDim = 128;
  plumb_indexer_k_quant_and_cache_params p{};
  p.k = bed.bf16(kWritten * kIndexerDim);
  p.slot_mapping = make_slots(bed);
  p.cache = make_cache(bed, kIndexerDim + 4);
  p.tokens = kWritten;
  p.k_row_stride = kIndexerDim;
  p.head_dim = p.quant_block_size = kIndexerDim;
  p.scale_form = PLUMB_SCALE_POWER_OF_TWO;
  p.amax_floor = 1e-4F;
  return launch_of(entry, p);
}

// ---- top-k ----

constexpr std::int32_t kTopK = 1024;

DeviceLaunch make_top_k_prefill(DeviceBed& bed, const device::OpEntry& entry) {
  constexpr std::int64_t kColumns = 32 << 10;
  plumb_top_k_per_row_prefill_params p{};
  p.logits = bed.fp32(kTokens * kColumns);
  p.row_starts = bed.upload(std::vector<std::int32_t>(kTokens, 0));
  p.row_ends = bed.upload(std::vector<std::int32_t>(kTokens, kColumns));
  p.indices = bed.room<std::int32_t>(kTokens * kTopK);
  p.rows = kTokens;
  p.columns = p.logits_row_stride = kColumns;
  p.logits_column_stride = 1;
  p.k = p.indices_row_stride = kTopK;
  return launch_of(entry, p);
}

DeviceLaunch make_top_k_decode(DeviceBed& bed, const device::OpEntry& entry, std::int64_t rows,
                               std::int64_t columns) {
  plumb_top_k_per_row_decode_params p{};
  p.logits = bed.fp32(rows * columns);
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(rows),
                                          static_cast<std::int32_t>(columns));
  p.seq_lens = bed.upload(lengths);
  p.indices = bed.room<std::int32_t>(rows * kTopK);
  p.rows = rows;
  p.columns = p.logits_row_stride = columns;
  p.logits_column_stride = 1;
  p.seq_lens_row_stride = p.next_n = 1;
  p.seq_lens_dims = 1;
  p.k = p.indices_row_stride = kTopK;
  return launch_of(entry, p);
}

DeviceOp top_k_decode(std::string name, std::int64_t rows, std::int64_t columns, Target target) {
  return {.name = std::move(name),
          .op = "top_k_per_row_decode",
          .target = target,
          .bytes = bytes_of(rows * (columns + kTopK), 4),
          .make_set = [=](DeviceBed& bed, const device::OpEntry& entry) {
            return make_top_k_decode(bed, entry, rows, columns);
          }};
}

// ---- sparse MLA ----

constexpr std::int64_t kRequests = 256, kMainWidth = 128, kExtraWidth = 1024;
constexpr std::int64_t kMlaTokenBytes = 584;

plumb_mla_cache make_mla_cache(DeviceBed& bed, std::int64_t tokens) {
  plumb_mla_cache cache{};
  cache.block_stride_bytes = kPage * kMlaTokenBytes;
  cache.num_blocks = tokens / kPage;
  // Codes, scales and RoPE that are finite, whatever they are.
  auto* const data = bed.room<std::uint8_t>(tokens * kMlaTokenBytes);
  bed.device().fill(data, 0x3c, static_cast<std::size_t>(tokens * kMlaTokenBytes), bed.stream());
  cache.data = data;
  cache.page = kPage;
  cache.dialect = PLUMB_E4M3FN;
  cache.layout = PLUMB_MLA_V4;
  return cache;
}

plumb_mla_candidates make_candidates(DeviceBed& bed, std::int64_t width, std::int64_t tokens) {
  std::mt19937 engine(static_cast<std::uint32_t>(width));
  std::vector<std::int32_t> slots(static_cast<std::size_t>(kRequests * width));
  for (std::int32_t& slot : slots) slot = static_cast<std::int32_t>(engine() % tokens);
  plumb_mla_candidates candidates{};
  candidates.indices = bed.upload(slots);
  candidates.request_stride = candidates.query_stride = width;
  candidates.width = width;
  return candidates;
}

DeviceLaunch make_sparse_mla_decode(DeviceBed& bed, const device::OpEntry& entry) {
  const auto plan = std::make_shared<plumb_mla_plan>();
  plan->num_parts = reference::plan_parts(bed.device().properties().multiprocessors, 1, kHeads);
  plan->tiles = bed.room<std::int32_t>(8 * plan->num_parts);
  plan->num_splits = bed.room<std::int32_t>(kRequests + 1);
  plan->block_n = 64;
  plan->fixed_overhead = 5;
  const std::int64_t slots = kRequests + plan->num_parts;
  plumb_sparse_mla_decode_params p{};
  p.q = bed.bf16(kRequests * kHeads * kHeadDim);
  p.main_cache = make_mla_cache(bed, kRequests * kMainWidth);
  p.extra_cache = make_mla_cache(bed, kRequests * kExtraWidth);
  p.main = make_candidates(bed, kMainWidth, kRequests * kMainWidth);
  p.extra = make_candidates(bed, kExtraWidth, kRequests * kExtraWidth);
  p.attn_sink = bed.fp32(kHeads);
  p.out = bed.room<std::uint16_t>(kRequests * kHeads * kHeadDim);
  p.lse = bed.room<float>(kRequests * kHeads);
  p.partial_out = bed.room<float>(slots * kHeads * kHeadDim);
  p.partial_lse = bed.room<float>(slots * kHeads);
  p.requests = kRequests;
  p.queries = 1;
  p.heads = kHeads;
  p.q_request_stride = p.q_query_stride = kHeads * kHeadDim;
  p.q_head_stride = kHeadDim;
  p.out_request_stride = p.out_query_stride = kHeads * kHeadDim;
  p.out_head_stride = kHeadDim;
  p.lse_request_stride = kHeads;
  p.lse_head_stride = 1;
  p.partial_out_slot_stride = p.partial_out_query_stride = kHeads * kHeadDim;
  p.partial_out_head_stride = kHeadDim;
  p.partial_lse_slot_stride = p.partial_lse_query_stride = kHeads;
  p.sm_scale = 0.0442F;
  const auto state = std::make_shared<device::LaunchState>();
  return [entry, p, plan, state](device::Stream stream) {
    plumb_sparse_mla_decode_params with_stream = p;
    with_stream.plan = plan.get();
    with_stream.stream = stream;
    return state->launch(entry, &with_stream);
  };
}

}  // namespace

std::vector<DeviceOp> device_ops() {
  std::vector<DeviceOp> ops = row_ops();
  ops.push_back(moving_op("quantize_and_insert_k_cache", bytes_of(kWritten, 2 * kLatent + 8 + 584),
                          make_quantize_and_insert));
  ops.push_back(moving_op("concat_and_cache_ds_mla",
                          bytes_of(kWritten, 2 * (kLatent + kRope) + 8 + 656),
                          make_concat_and_cache));
  ops.push_back(moving_op("indexer_k_quant_and_cache", bytes_of(kWritten, 2 * 128 + 8 + 132),
                          make_indexer_k_quant));
  ops.push_back({.name = "top_k_per_row_prefill",
                 .op = "top_k_per_row_prefill",
                 .target = kHalfOfFloor,
                 .bytes = bytes_of(kTokens * ((32 << 10) + kTopK + 2), 4),
                 .make_set = make_top_k_prefill});
  ops.push_back(top_k_decode("top_k_per_row_decode", kTokens, 32 << 10, kHalfOfFloor));
  ops.push_back(
      top_k_decode("top_k_per_row_decode, 256 K columns", 1024, 256 << 10, kThirdOfFloor));
  constexpr std::int64_t kCandidates = kRequests * (kMainWidth + kExtraWidth);
  ops.push_back({.name = "sparse_mla_decode",
                 .op = "sparse_mla_decode",
                 .target = {},
                 .bytes = bytes_of(kCandidates, kMlaTokenBytes + 4) +
                          bytes_of(2 * kRequests * kHeads * kHeadDim, 2),
                 .matrix_multiply_adds = 2.0 * kCandidates * kHeads * kHeadDim,
                 .make_set = make_sparse_mla_decode});
  return ops;
}

}  // namespace plumb::tools
