// SPDX-License-Identifier: Apache-2.0
//
// Norms and hyper-connections at the width of V4-Pro, 8192 tokens: what each must read and write
// once, and what it must calculate.
#include <plumb/ops/hyper_connection.h>
#include <plumb/ops/norm.h>

#include <numeric>

#include "tools/bench/bench_device_ops.h"

namespace plumb::tools {

namespace {

constexpr std::int64_t kHidden = 7168, kStreams = 4, kDepth = kStreams * kHidden;
constexpr std::int64_t kQueryLatent = 1536;
constexpr float kEps = 1e-6F;

// ---- norms ----

DeviceLaunch make_rms_norm(DeviceBed& bed, const device::OpEntry& entry) {
  plumb_rms_norm_params p{};
  p.x = bed.bf16(kTokens * kHidden);
  p.weight = bed.bf16(kHidden);
  p.out = bed.room<std::uint16_t>(kTokens * kHidden);
  p.tokens = kTokens;
  p.hidden = p.x_row_stride = p.out_row_stride = kHidden;
  p.eps = kEps;
  return launch_of(entry, p);
}

DeviceLaunch make_fused_add_rms_norm(DeviceBed& bed, const device::OpEntry& entry) {
  plumb_fused_add_rms_norm_params p{};
  p.x = bed.bf16(kTokens * kHidden);
  p.residual = bed.bf16(kTokens * kHidden);
  p.weight = bed.bf16(kHidden);
  p.tokens = kTokens;
  p.hidden = p.x_row_stride = p.residual_row_stride = kHidden;
  p.eps = kEps;
  return launch_of(entry, p);
}

DeviceLaunch make_mtp_input_rms_norm(DeviceBed& bed, const device::OpEntry& entry) {
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
  p.hidden = p.out_embeds_row_stride = p.out_hidden_slot_stride = kHidden;
  p.out_hidden_token_stride = kDepth;
  p.hc_mult = kStreams;
  p.eps = kEps;
  return launch_of(entry, p);
}

DeviceLaunch make_mtp_shared_head_rms_norm(DeviceBed& bed, const device::OpEntry& entry) {
  plumb_mtp_shared_head_rms_norm_params p{};
  p.x = bed.bf16(kTokens * kHidden);
  p.weight = bed.bf16(kHidden);
  p.out = bed.room<std::uint16_t>(kTokens * kHidden);
  p.tokens = kTokens;
  p.hidden = p.out_row_stride = kHidden;
  p.eps = kEps;
  return launch_of(entry, p);
}

// Both latents are slices of one product's rows.
DeviceLaunch make_q_kv_rms_norm(DeviceBed& bed, const device::OpEntry& entry) {
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
  p.out_q_row_stride = kQueryLatent;
  p.out_kv_row_stride = kLatent;
  p.eps = kEps;
  return launch_of(entry, p);
}

DeviceLaunch make_q_head_rms_norm_rope(DeviceBed& bed, const device::OpEntry& entry) {
  plumb_q_head_rms_norm_rope_params p{};
  std::vector<std::int64_t> positions(kTokens);
  std::iota(positions.begin(), positions.end(), 0);
  p.q = bed.bf16(kTokens * kHeads * kHeadDim);
  p.positions = bed.upload(positions);
  p.cos_sin = bed.fp32(kTokens * kRope);
  p.out = bed.room<std::uint16_t>(kTokens * kHeads * kHeadDim);
  p.tokens = kTokens;
  p.heads = kHeads;
  p.q_token_stride = p.out_token_stride = kHeads * kHeadDim;
  p.out_head_stride = kHeadDim;
  p.eps = kEps;
  return launch_of(entry, p);
}

// ---- hyper-connections ----

DeviceLaunch make_mhc_pre(DeviceBed& bed, const device::OpEntry& entry) {
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
  p.hidden = p.residual_slot_stride = p.layer_input_row_stride = kHidden;
  p.residual_token_stride = kDepth;
  p.post_row_stride = kStreams;
  p.comb_token_stride = kStreams * kStreams;
  p.splits = 1;
  p.sinkhorn_iterations = 20;
  p.rms_eps = p.pre_eps = p.sinkhorn_eps = p.norm_eps = kEps;
  p.post_mult = 2;
  return launch_of(entry, p);
}

DeviceLaunch make_mhc_post(DeviceBed& bed, const device::OpEntry& entry) {
  plumb_mhc_post_params p{};
  p.x = bed.bf16(kTokens * kHidden);
  p.residual = bed.bf16(kTokens * kDepth);
  p.post = bed.fp32(kTokens * kStreams);
  p.comb = bed.fp32(kTokens * kStreams * kStreams);
  p.out = bed.room<std::uint16_t>(kTokens * kDepth);
  p.tokens = kTokens;
  p.hidden = p.residual_slot_stride = p.out_slot_stride = kHidden;
  p.residual_token_stride = p.out_token_stride = kDepth;
  return launch_of(entry, p);
}

DeviceLaunch make_hc_head(DeviceBed& bed, const device::OpEntry& entry) {
  plumb_hc_head_params p{};
  p.hidden_states = bed.bf16(kTokens * kDepth);
  p.fn = bed.fp32(kStreams * kDepth);
  p.scale = bed.fp32(1);
  p.base = bed.fp32(kStreams);
  p.out = bed.room<std::uint16_t>(kTokens * kHidden);
  p.tokens = kTokens;
  p.hidden = p.hidden_slot_stride = p.out_row_stride = kHidden;
  p.hidden_token_stride = kDepth;
  p.rms_eps = p.hc_eps = kEps;
  return launch_of(entry, p);
}

}  // namespace

std::vector<DeviceOp> row_ops() {
  constexpr std::int64_t kRows = kTokens * kHidden, kAllRows = kTokens * kDepth;
  std::vector<DeviceOp> ops{
      moving_op("rms_norm", bytes_of(2 * kRows, 2), make_rms_norm),
      moving_op("fused_add_rms_norm", bytes_of(4 * kRows, 2), make_fused_add_rms_norm),
      moving_op("mtp_input_rms_norm", bytes_of(2 * (kRows + kAllRows), 2), make_mtp_input_rms_norm),
      moving_op("mtp_shared_head_rms_norm", bytes_of(2 * kRows, 2), make_mtp_shared_head_rms_norm),
      moving_op("q_kv_rms_norm", bytes_of(2 * kTokens * (kQueryLatent + kLatent), 2),
                make_q_kv_rms_norm),
      moving_op("q_head_rms_norm_rope", bytes_of(2 * kTokens * kHeads * kHeadDim, 2),
                make_q_head_rms_norm_rope),
  };
  // Each mix, also hc_head's, is three products on matrix units, whose operands are bf16: weights
  // of fp32 have three parts. The square of each element and its share of the gated sum are fp32's.
  ops.push_back({.name = "mhc_pre",
                 .op = "mhc_pre",
                 .target = kHalfOfFloor,
                 .bytes = bytes_of(kAllRows + kRows, 2) + bytes_of(24 * kDepth, 4),
                 .multiply_adds = 2.0 * kAllRows,
                 .matrix_multiply_adds = 3 * 24.0 * kAllRows,
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
                 .multiply_adds = 2.0 * kAllRows,
                 .matrix_multiply_adds = 3 * 4.0 * kAllRows,
                 .make_set = make_hc_head});
  return ops;
}

}  // namespace plumb::tools
