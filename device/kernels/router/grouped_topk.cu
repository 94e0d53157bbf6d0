// SPDX-License-Identifier: Apache-2.0
//
// grouped_topk: a wave per token. Lane g < n_group adds up the two best experts of group g. A
// ballot tells all lanes which groups are kept. Then each lane ranks its own experts, and the wave
// picks the best ones one after another. Legal: experts up to 1024, groups and topk up to 32.
#include "device/kernels/router/router.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_grouped_topk_params;

constexpr int kMostGroups = 32;

PLUMB_DEVICE float rounded(const Params& p, float x) {
  const bool to_bf16 = p.arithmetic != PLUMB_ROUTER_FP32 && p.logits_format == PLUMB_BF16;
  return to_bf16 ? load_bf16(store_bf16(x)) : x;
}

PLUMB_DEVICE bool is_finite(float logit) { return logit - logit == 0.0F; }

PLUMB_DEVICE bool counts_as_nothing(const Params& p, float logit) {
  return p.nonfinite == PLUMB_NONFINITE_GUARD_ALL && !is_finite(logit);
}

PLUMB_DEVICE float logit_of(const Params& p, std::int64_t token, int expert) {
  return load_logit(p.logits, p.logits_format, token * p.logits_row_stride + expert);
}

PLUMB_DEVICE float score_of(const Params& p, float logit) {
  constexpr float kLog2E = 1.44269504F;
  if (counts_as_nothing(p, logit)) return 0.0F;
  const float sigmoid = 1.0F / (1.0F + exp2_approx(-logit * kLog2E));
  if (p.arithmetic != PLUMB_ROUTER_LOGITS_FORMAT_TANH) return rounded(p, sigmoid);
  return rounded(p, 0.5F * rounded(p, 2.0F * sigmoid - 1.0F) + 0.5F);
}

PLUMB_DEVICE float choice_of(const Params& p, std::int64_t token, int expert) {
  const float logit = logit_of(p, token, expert);
  if (counts_as_nothing(p, logit)) return -INFINITY;
  const bool round_bias =
      p.bias_format == PLUMB_BIAS_LOGITS_FORMAT && p.logits_format == PLUMB_BF16;
  const float bias = round_bias ? load_bf16(store_bf16(p.bias[expert])) : p.bias[expert];
  return rounded(p, score_of(p, logit) + rounded(p, bias));
}

// The choice value of an expert in a kept group.
PLUMB_DEVICE float open_choice(const Params& p, std::int64_t token, int expert) {
  const bool closed =
      p.nonfinite == PLUMB_NONFINITE_GUARD_CHOICE_ONLY && !is_finite(logit_of(p, token, expert));
  return closed ? -INFINITY : choice_of(p, token, expert);
}

// Sum of the two best choices of a group. Equal choices both count.
PLUMB_DEVICE float group_score(const Params& p, std::int64_t token, int group) {
  const int width = static_cast<int>(p.experts / p.n_group);
  float best = -INFINITY, second = -INFINITY;
  for (int i = 0; i < width; ++i) {
    const float choice = choice_of(p, token, group * width + i);
    if (choice_key(choice) > choice_key(best)) {
      second = best;
      best = choice;
    } else if (choice_key(choice) > choice_key(second)) {
      second = choice;
    }
  }
  return rounded(p, best + second);
}

// Bit g: group g is kept. 0 if fewer than topk_group groups have a score.
PLUMB_DEVICE LaneMask kept_groups(const Params& p, std::int64_t token) {
  const bool has_group = lane_index() < p.n_group;
  const float score = has_group ? group_score(p, token, lane_index()) : -INFINITY;
  const std::uint64_t rank = rank_of(p.ties, score, lane_index());
  int better = 0;
  for (int group = 0; group < p.n_group; ++group) {
    better += shuffle(all_lanes(), rank, group, wave_size()) > rank;
  }
  const LaneMask kept = ballot(all_lanes(), has_group && better < p.topk_group);
  const LaneMask alive = ballot(all_lanes(), score != -INFINITY);
  // If a kept group has no score, no group is kept.
  return (kept & ~alive) == 0 ? kept : 0;
}

PLUMB_KERNEL void grouped_topk_kernel(Params p) {
  const std::int64_t token = token_of_wave();
  if (token >= p.tokens) return;
  const int lane = lane_index();
  const LaneMask kept = kept_groups(p, token);
  if (kept == 0) {
    if (lane >= p.topk) return;
    return store_expert(p, token, lane, 1.0F / static_cast<float>(p.topk));
  }
  std::uint64_t ranks[kMostRanksPerLane];
  int count = 0;
  for (int expert = lane; expert < p.experts; expert += wave_size()) {
    const bool open = kept >> (expert / (p.experts / p.n_group)) & 1;
    const float choice = open ? open_choice(p, token, expert) : -INFINITY;
    ranks[count++] = rank_of(p.ties, choice, expert);
  }
  const int id = pick_best(p, ranks, count);
  const float score = lane < p.topk ? score_of(p, logit_of(p, token, id)) : 0.0F;
  const float sum = lanes_sum(score) + 1e-20F;
  if (lane >= p.topk) return;
  const float weight = p.renormalize ? score / sum : score;
  store_expert(p, token, id, weight * p.routed_scaling_factor);
}

// Shapes that vLLM's small-expert kernel takes.
bool has_small_experts(const Params& p) {
  if (p.n_group == 1) return p.experts <= 512 && (p.topk <= 8 || p.topk == 22);
  return p.experts <= 256 && p.experts / p.n_group <= 32 && p.topk_group <= 4 && p.topk <= 8;
}

bool is_legal(const Params& p) {
  if (!is_legal_router(p.tokens, p.logits_row_stride, p.experts, p.topk, p.logits_format) ||
      !legal_outputs(p)) {
    return false;
  }
  if (p.n_group < 1 || p.n_group > kMostGroups || p.experts % p.n_group != 0) return false;
  if (p.experts / p.n_group < 2) return false;
  if (p.topk_group < 1 || p.topk_group > p.n_group) return false;
  return p.topk <= p.topk_group * (p.experts / p.n_group);
}

plumb_status launch_grouped_topk(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  Params p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.kernel_domain == PLUMB_DOMAIN_SMALL_EXPERTS_IN_FP32 && has_small_experts(p)) {
    p.arithmetic = PLUMB_ROUTER_FP32;
    p.nonfinite = PLUMB_NONFINITE_ORDERED_BITS;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.logits || !p.bias || !p.weights || !p.ids) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  const LaunchShape shape = router_shape(p.tokens, device.wave_size);
  if (p.experts > kMostExperts || shape.grid_x > device.max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(grouped_topk_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry grouped_topk() { return {"grouped_topk", launch_grouped_topk, router_numerics()}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
