// SPDX-License-Identifier: Apache-2.0
//
// The shapes of V4-Pro in production: 8192 tokens, 256 K tokens for the writers of caches, rows of
// 32 K scores. What each op must read and write once, and what it must calculate.
#include <algorithm>
#include <numeric>
#include <random>

#include "reference/tile_plan.h"
#include "tools/bench_device.h"

namespace plumb::tools {

namespace {

constexpr std::int64_t kTokens = 8192, kHidden = 7168, kStreams = 4, kDepth = kStreams * kHidden;
constexpr std::int64_t kQueryLatent = 1536, kLatent = 512, kHeads = 128, kHeadDim = 512, kRope = 64;
constexpr std::int64_t kWritten = 256 << 10, kPage = 64;
constexpr float kEps = 1e-6F;
constexpr Target kMostOfFloor{.least = 0.8}, kHalfOfFloor{.least = 0.5},
    kThirdOfFloor{.least = 0.3};

constexpr double bytes_of(std::int64_t numbers, int each) {
  return static_cast<double>(numbers) * each;
}

// The op at its entry with a copy of these parameters; the stream is the caller's.
template <class Params>
DeviceLaunch launch_of(const plumb_op_entry& entry, Params params) {
  return [launch = entry.launch, params](device::Stream stream) {
    Params with_stream = params;
    with_stream.stream = stream;
    return launch(&with_stream);
  };
}

// ---- norms ----

DeviceLaunch make_rms_norm(DeviceBed& bed, const plumb_op_entry& entry) {
  plumb_rms_norm_params p{};
  p.x = bed.bf16(kTokens * kHidden);
  p.weight = bed.bf16(kHidden);
  p.out = bed.room<std::uint16_t>(kTokens * kHidden);
  p.tokens = kTokens;
  p.hidden = p.x_row_stride = kHidden;
  p.eps = kEps;
  return launch_of(entry, p);
}

DeviceLaunch make_fused_add_rms_norm(DeviceBed& bed, const plumb_op_entry& entry) {
  plumb_fused_add_rms_norm_params p{};
  p.x = bed.bf16(kTokens * kHidden);
  p.residual = bed.bf16(kTokens * kHidden);
  p.weight = bed.bf16(kHidden);
  p.tokens = kTokens;
  p.hidden = p.x_row_stride = kHidden;
  p.eps = kEps;
  return launch_of(entry, p);
}

DeviceLaunch make_mtp_input_rms_norm(DeviceBed& bed, const plumb_op_entry& entry) {
  plumb_mtp_input_rms_norm_params p{};
  std::vector<std::int64_t> positions(kTokens);
  std::iota(positions.begin(), positions.end(), 0);
  p.embeds = bed.bf16(kTokens * kHidden);
  p.previous_hidden = bed.bf16(kTokens * kDepth);
  p.positions = bed.upload(positions);
  p.enorm_weight = bed.bf16(kHidden);
  p.hnorm_weight = bed.bf16(kHidden);
  p.out_embeds = bed.room<std::uint16_t>(kTokens * kHidden);
  p.out_hidden = bed.room<std::uint16_t>(kTokens * kDepth);
  p.tokens = kTokens;
  p.hidden = kHidden;
  p.hc_mult = kStreams;
  p.eps = kEps;
  return launch_of(entry, p);
}

DeviceLaunch make_mtp_shared_head_rms_norm(DeviceBed& bed, const plumb_op_entry& entry) {
  plumb_mtp_shared_head_rms_norm_params p{};
  p.x = bed.bf16(kTokens * kHidden);
  p.weight = bed.bf16(kHidden);
  p.out = bed.room<std::uint16_t>(kTokens * kHidden);
  p.tokens = kTokens;
  p.hidden = kHidden;
  p.eps = kEps;
  return launch_of(entry, p);
}

// Both latents are slices of one product's rows.
DeviceLaunch make_q_kv_rms_norm(DeviceBed& bed, const plumb_op_entry& entry) {
  constexpr std::int64_t kRow = kQueryLatent + kLatent;
  plumb_q_kv_rms_norm_params p{};
  p.q = bed.bf16(kTokens * kRow);
  p.kv = p.q + kQueryLatent;
  p.q_weight = bed.bf16(kQueryLatent);
  p.kv_weight = bed.bf16(kLatent);
  p.out_q = bed.room<std::uint16_t>(kTokens * kQueryLatent);
  p.out_kv = bed.room<std::uint16_t>(kTokens * kLatent);
  p.tokens = kTokens;
  p.q_hidden = kQueryLatent;
  p.kv_hidden = kLatent;
  p.q_row_stride = p.kv_row_stride = kRow;
  p.eps = kEps;
  return launch_of(entry, p);
}

DeviceLaunch make_q_head_rms_norm_rope(DeviceBed& bed, const plumb_op_entry& entry) {
  plumb_q_head_rms_norm_rope_params p{};
  std::vector<std::int64_t> positions(kTokens);
  std::iota(positions.begin(), positions.end(), 0);
  p.q = bed.bf16(kTokens * kHeads * kHeadDim);
  p.positions = bed.upload(positions);
  p.cos_sin = bed.fp32(kTokens * kRope);
  p.out = bed.room<std::uint16_t>(kTokens * kHeads * kHeadDim);
  p.tokens = kTokens;
  p.heads = kHeads;
  p.q_token_stride = kHeads * kHeadDim;
  p.eps = kEps;
  return launch_of(entry, p);
}

// ---- hyper-connections ----

DeviceLaunch make_mhc_pre(DeviceBed& bed, const plumb_op_entry& entry) {
  constexpr std::int64_t kMixes = 24;
  plumb_mhc_pre_params p{};
  p.residual = bed.bf16(kTokens * kDepth);
  p.fn = bed.fp32(kMixes * kDepth);
  p.scale = bed.fp32(3);
  p.base = bed.fp32(kMixes);
  p.norm_weight = bed.bf16(kHidden);
  p.post = bed.room<float>(kTokens * kStreams);
  p.comb = bed.room<float>(kTokens * kStreams * kStreams);
  p.layer_input = bed.room<std::uint16_t>(kTokens * kHidden);
  p.partial_mixes = bed.room<float>(kTokens * kMixes);
  p.partial_square_sums = bed.room<float>(kTokens);
  p.tokens = kTokens;
  p.hidden = p.residual_slot_stride = kHidden;
  p.residual_token_stride = kDepth;
  p.splits = 1;
  p.sinkhorn_iterations = 20;
  p.rms_eps = p.pre_eps = p.sinkhorn_eps = p.norm_eps = kEps;
  p.post_mult = 2;
  return launch_of(entry, p);
}

DeviceLaunch make_mhc_post(DeviceBed& bed, const plumb_op_entry& entry) {
  plumb_mhc_post_params p{};
  p.x = bed.bf16(kTokens * kHidden);
  p.residual = bed.bf16(kTokens * kDepth);
  p.post = bed.fp32(kTokens * kStreams);
  p.comb = bed.fp32(kTokens * kStreams * kStreams);
  p.out = bed.room<std::uint16_t>(kTokens * kDepth);
  p.tokens = kTokens;
  p.hidden = p.residual_slot_stride = kHidden;
  p.residual_token_stride = kDepth;
  return launch_of(entry, p);
}

DeviceLaunch make_hc_head(DeviceBed& bed, const plumb_op_entry& entry) {
  plumb_hc_head_params p{};
  p.hidden_states = bed.bf16(kTokens * kDepth);
  p.fn = bed.fp32(kStreams * kDepth);
  p.scale = bed.fp32(1);
  p.base = bed.fp32(kStreams);
  p.out = bed.room<std::uint16_t>(kTokens * kHidden);
  p.tokens = kTokens;
  p.hidden = p.hidden_slot_stride = kHidden;
  p.hidden_token_stride = kDepth;
  p.rms_eps = p.hc_eps = kEps;
  return launch_of(entry, p);
}

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

DeviceLaunch make_quantize_and_insert(DeviceBed& bed, const plumb_op_entry& entry) {
  plumb_quantize_and_insert_k_cache_params p{};
  p.kv = bed.bf16(kWritten * kLatent);
  p.slot_mapping = make_slots(bed);
  p.cache = make_cache(bed, 584);
  p.tokens = kWritten;
  p.kv_row_stride = kLatent;
  return launch_of(entry, p);
}

DeviceLaunch make_concat_and_cache(DeviceBed& bed, const plumb_op_entry& entry) {
  plumb_concat_and_cache_ds_mla_params p{};
  p.kv_c = bed.bf16(kWritten * kLatent);
  p.k_pe = bed.bf16(kWritten * kRope);
  p.slot_mapping = make_slots(bed);
  p.cache = make_cache(bed, 656);
  p.tokens = kWritten;
  p.kv_c_row_stride = kLatent;
  p.k_pe_row_stride = kRope;
  return launch_of(entry, p);
}

DeviceLaunch make_indexer_k_quant(DeviceBed& bed, const plumb_op_entry& entry) {
  constexpr std::int32_t kIndexerDim = 128;
  plumb_indexer_k_quant_and_cache_params p{};
  p.k = bed.bf16(kWritten * kIndexerDim);
  p.slot_mapping = make_slots(bed);
  p.cache = make_cache(bed, kIndexerDim + 4);
  p.tokens = kWritten;
  p.k_row_stride = kIndexerDim;
  p.head_dim = p.quant_block_size = kIndexerDim;
  p.ue8m0 = 1;
  return launch_of(entry, p);
}

// ---- top-k ----

constexpr std::int32_t kTopK = 1024;

DeviceLaunch make_top_k_prefill(DeviceBed& bed, const plumb_op_entry& entry) {
  constexpr std::int64_t kColumns = 32 << 10;
  plumb_top_k_per_row_prefill_params p{};
  p.logits = bed.fp32(kTokens * kColumns);
  p.row_starts = bed.upload(std::vector<std::int32_t>(kTokens, 0));
  p.row_ends = bed.upload(std::vector<std::int32_t>(kTokens, kColumns));
  p.indices = bed.room<std::int32_t>(kTokens * kTopK);
  p.num_rows = kTokens;
  p.columns = p.logits_row_stride = kColumns;
  p.logits_column_stride = 1;
  p.k = kTopK;
  return launch_of(entry, p);
}

DeviceLaunch make_top_k_decode(DeviceBed& bed, const plumb_op_entry& entry, std::int64_t rows,
                               std::int64_t columns) {
  plumb_top_k_per_row_decode_params p{};
  p.logits = bed.fp32(rows * columns);
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(rows),
                                          static_cast<std::int32_t>(columns));
  p.seq_lens = bed.upload(lengths);
  p.indices = bed.room<std::int32_t>(rows * kTopK);
  p.num_rows = rows;
  p.columns = p.logits_row_stride = columns;
  p.logits_column_stride = 1;
  p.seq_lens_row_stride = p.seq_lens_dims = p.next_n = 1;
  p.k = kTopK;
  return launch_of(entry, p);
}

DeviceOp top_k_decode(std::string name, std::int64_t rows, std::int64_t columns, Target target) {
  return {.name = std::move(name),
          .op = "top_k_per_row_decode",
          .target = target,
          .bytes = bytes_of(rows * (columns + kTopK), 4),
          .make_set = [=](DeviceBed& bed, const plumb_op_entry& entry) {
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
  candidates.width = static_cast<std::int32_t>(width);
  return candidates;
}

DeviceLaunch make_sparse_mla_decode(DeviceBed& bed, const plumb_op_entry& entry) {
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
  p.sm_scale = 0.0442F;
  return [launch = entry.launch, p, plan](device::Stream stream) {
    plumb_sparse_mla_decode_params with_stream = p;
    with_stream.plan = plan.get();
    with_stream.stream = stream;
    return launch(&with_stream);
  };
}

DeviceOp norm(std::string_view op, double bytes,
              DeviceLaunch (*make)(DeviceBed&, const plumb_op_entry&)) {
  return {
      .name = std::string(op), .op = op, .target = kMostOfFloor, .bytes = bytes, .make_set = make};
}

}  // namespace

std::vector<DeviceOp> device_ops() {
  constexpr std::int64_t kRows = kTokens * kHidden, kAllRows = kTokens * kDepth;
  std::vector<DeviceOp> ops{
      norm("rms_norm", bytes_of(2 * kRows, 2), make_rms_norm),
      norm("fused_add_rms_norm", bytes_of(4 * kRows, 2), make_fused_add_rms_norm),
      norm("mtp_input_rms_norm", bytes_of(2 * (kRows + kAllRows), 2), make_mtp_input_rms_norm),
      norm("mtp_shared_head_rms_norm", bytes_of(2 * kRows, 2), make_mtp_shared_head_rms_norm),
      norm("q_kv_rms_norm", bytes_of(2 * kTokens * (kQueryLatent + kLatent), 2),
           make_q_kv_rms_norm),
      norm("q_head_rms_norm_rope", bytes_of(2 * kTokens * kHeads * kHeadDim, 2),
           make_q_head_rms_norm_rope),
  };
  // A multiply-add for each mix and the square of each element, and for the gated sum.
  ops.push_back({.name = "mhc_pre",
                 .op = "mhc_pre",
                 .target = kHalfOfFloor,
                 .bytes = bytes_of(kAllRows + kRows, 2) + bytes_of(24 * kDepth, 4),
                 .multiply_adds = 26.0 * kAllRows,
                 .make_set = make_mhc_pre});
  ops.push_back({.name = "mhc_post",
                 .op = "mhc_post",
                 .target = kMostOfFloor,
                 .bytes = bytes_of(2 * kAllRows + kRows, 2),
                 .multiply_adds = 5.0 * kAllRows,
                 .make_set = make_mhc_post});
  ops.push_back({.name = "hc_head",
                 .op = "hc_head",
                 .target = kMostOfFloor,
                 .bytes = bytes_of(kAllRows + kRows, 2) + bytes_of(kStreams * kDepth, 4),
                 .multiply_adds = 6.0 * kAllRows,
                 .make_set = make_hc_head});
  ops.push_back(norm("quantize_and_insert_k_cache", bytes_of(kWritten, 2 * kLatent + 8 + 584),
                     make_quantize_and_insert));
  ops.push_back(norm("concat_and_cache_ds_mla", bytes_of(kWritten, 2 * (kLatent + kRope) + 8 + 656),
                     make_concat_and_cache));
  ops.push_back(norm("indexer_k_quant_and_cache", bytes_of(kWritten, 2 * 128 + 8 + 132),
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
