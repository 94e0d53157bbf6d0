// SPDX-License-Identifier: Apache-2.0
#include "decode/models/v32_workspace.h"

namespace plumb::device::decode {

V32Workspace::V32Workspace(const Geometry& g, EngineMemory& memory) {
  const std::int64_t tokens = g.max_tokens(), splits = tokens + g.plan_parts;
  const auto bf16 = [&](std::int64_t columns, const char* label) {
    return memory.allocate<std::uint16_t>(tokens * columns, label);
  };
  const auto f32 = [&](std::int64_t columns, const char* label) {
    return memory.allocate<float>(tokens * columns, label);
  };
  residual = bf16(g.hidden, "residual");
  hidden = bf16(g.hidden, "hidden");
  x = bf16(g.hidden, "x");
  q_latent = bf16(g.q_lora, "q_latent");
  kv_latent = bf16(kHeadDim, "kv_latent");
  k_rope = bf16(kRopeDim, "k_rope");
  q_normed = bf16(g.q_lora, "q_normed");
  kv_normed = bf16(kHeadDim, "kv_normed");
  q = bf16(g.heads * kV32KeyDim, "q");
  index_keys = bf16(g.index_dim, "index_keys");
  index_q = bf16(g.index_heads * g.index_dim, "index_q");
  index_weights = bf16(g.index_heads, "index_weights");
  index_q_codes =
      memory.allocate<std::uint8_t>(tokens * g.index_heads * g.index_dim, "index_q_codes");
  index_scales = f32(g.index_heads, "index_scales");
  logits = f32(g.states(), "logits");
  top_k = memory.allocate<std::int32_t>(tokens * g.top_k, "top_k");
  attention = bf16(g.heads * kHeadDim, "attention");
  lse = f32(g.heads, "lse");
  partial_out = memory.allocate_scratch<float>(splits * g.heads * kHeadDim, "partial_out");
  partial_lse = memory.allocate_scratch<float>(splits * g.heads, "partial_lse");
  router_logits = f32(g.experts, "router_logits");
  router_weights = f32(g.experts_per_token, "router_weights");
  router_ids = memory.allocate<std::int32_t>(tokens * g.experts_per_token, "router_ids");
}

}  // namespace plumb::device::decode
