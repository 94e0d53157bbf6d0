// SPDX-License-Identifier: Apache-2.0
//
// sqrt_softplus_topk: a wave per token. Each lane ranks its own experts, and the wave picks the
// best ones one after another. Legal: experts up to 1024, topk up to 32.
#include "device/kernels/router/router.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_sqrt_softplus_topk_params;

constexpr float kChoiceOfNan = -1e30F;

PLUMB_DEVICE float logit_of(const Params& p, std::int64_t token, int expert) {
  return load_logit(p.logits, p.logits_format, token * p.logits_row_stride + expert);
}

PLUMB_DEVICE float choice_of(const Params& p, std::int64_t token, int expert) {
  const float x = logit_of(p, token, expert);
  return x != x ? kChoiceOfNan : sqrt_softplus(p, x) + p.bias[expert];
}

PLUMB_DEVICE float score_of(const Params& p, std::int64_t token, int expert) {
  const float score = sqrt_softplus(p, logit_of(p, token, expert));
  if (p.weight == PLUMB_WEIGHT_SCORE) return score;
  return (score + p.bias[expert]) - p.bias[expert];
}

// The id of the expert that lane < topk stores. All lanes of the wave must call it.
PLUMB_DEVICE int pick_experts(const Params& p, std::int64_t token) {
  std::uint64_t ranks[kMostRanksPerLane];
  int count = 0;
  for (int expert = lane_index(); expert < p.experts; expert += wave_size()) {
    ranks[count++] = rank_of(p.ties, choice_of(p, token, expert), expert);
  }
  return pick_best(p, ranks, count);
}

PLUMB_KERNEL void sqrt_softplus_topk_kernel(Params p) {
  const std::int64_t token = token_of_wave();
  if (token >= p.tokens) return;
  const int lane = lane_index();
  if (p.token_expert_indices && lane < p.topk) {
    p.token_expert_indices[token * p.token_expert_indices_row_stride + lane] =
        static_cast<std::int32_t>(lane * p.tokens + token);
  }
  if (p.is_padding && p.is_padding[token]) {
    if (lane >= p.topk) return;
    return store_expert(p, token, -1, 0.0F);
  }
  const int id = pick_experts(p, token);
  const float score = lane < p.topk ? score_of(p, token, id) : 0.0F;
  const float sum = lanes_sum(score);
  if (lane >= p.topk) return;
  const float weight = p.renormalize ? score / divisor_of(p, sum) : score;
  store_expert(p, token, id, weight * p.routed_scaling_factor);
}

plumb_status launch_sqrt_softplus_topk(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal_router(p.tokens, p.logits_row_stride, p.experts, p.topk, p.logits_format) ||
      !legal_outputs(p) || (p.token_expert_indices && p.token_expert_indices_row_stride < p.topk)) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.logits || !p.bias || !p.weights || !p.ids) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  const LaunchShape shape = router_shape(p.tokens, device.wave_size);
  if (p.experts > kMostExperts || shape.grid_x > device.max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(sqrt_softplus_topk_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry sqrt_softplus_topk() {
  return {"sqrt_softplus_topk", launch_sqrt_softplus_topk, router_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
