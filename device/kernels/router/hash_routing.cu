// SPDX-License-Identifier: Apache-2.0
//
// hash_routing: a wave per token, a lane per column of the table. Legal: any experts, topk up to
// 32.
#include "device/kernels/router/router.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_hash_routing_params;

PLUMB_KERNEL void hash_routing_kernel(Params p) {
  const std::int64_t token = token_of_wave();
  if (token >= p.tokens) return;
  const int lane = lane_index();
  const std::int32_t* row = p.tid2eid + static_cast<std::int64_t>(p.input_ids[token]) * p.topk;
  const std::int32_t id = lane < p.topk ? row[lane] : -1;
  const bool is_expert = id >= 0 && id < p.experts;
  float score = 0.0F;
  if (is_expert) {
    score =
        sqrt_softplus(p, load_logit(p.logits, p.logits_format, token * p.logits_row_stride + id));
  }
  const float sum = lanes_sum(score);
  if (!is_expert) return;
  const float weight = p.renormalize ? score / divisor_of(p, sum) : score;
  store_expert(p, token, id, weight * p.routed_scaling_factor);
}

plumb_status launch_hash_routing(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal_router(p.tokens, p.logits_row_stride, p.experts, p.topk, p.logits_format) ||
      !legal_outputs(p)) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.logits || !p.input_ids || !p.tid2eid || !p.weights || !p.ids) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const Properties& device = stream_properties(p.stream);
  const LaunchShape shape = router_shape(p.tokens, device.wave_size);
  if (shape.grid_x > device.max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(hash_routing_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry hash_routing() { return {"hash_routing", launch_hash_routing, router_numerics()}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
