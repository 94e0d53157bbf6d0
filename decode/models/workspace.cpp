// SPDX-License-Identifier: Apache-2.0
#include "decode/models/workspace.h"

#include <algorithm>

#include "decode/models/weights.h"

namespace plumb::device::decode {

Workspace::Workspace(const Geometry& g, EngineMemory& memory) {
  const std::int64_t tokens = g.max_tokens();
  const auto bf16 = [&](std::int64_t columns, const char* label) {
    return memory.allocate<std::uint16_t>(tokens * columns, label);
  };
  const auto f32 = [&](std::int64_t columns, const char* label) {
    return memory.allocate<float>(tokens * columns, label);
  };
  embeds = bf16(g.hidden, "embeds");
  layer_input = bf16(g.hidden, "layer_input");
  x = bf16(g.hidden, "x");
  for (int turn = 0; turn < 2; ++turn) {
    streams[turn] = bf16(kStreams * g.hidden, "streams");
    post[turn] = f32(kStreams, "post");
    comb[turn] = f32(kStreams * kStreams, "comb");
  }
  partial_mixes = f32(kSplits * kMixes, "partial_mixes");
  partial_square_sums = f32(kSplits, "partial_square_sums");
  q_latent = bf16(g.q_lora, "q_latent");
  kv_latent = bf16(kHeadDim, "kv_latent");
  q_normed = bf16(g.q_lora, "q_normed");
  kv_normed = bf16(kHeadDim, "kv_normed");
  q_heads = bf16(g.heads * kHeadDim, "q_heads");
  q = bf16(g.heads * kHeadDim, "q");
  const bool compresses =
      std::ranges::any_of(g.layers, [](Attention kind) { return kind != Attention::window; });
  // Rows of C4A. Those of C128A are shorter.
  state_kv_score = f32(compresses ? 4 * kHeadDim : 0, "state kv_score");
  index_kv_score = f32(compresses ? 4 * g.index_dim : 0, "index kv_score");
  index_q = bf16(g.index_heads * g.index_dim, "index_q");
  index_weights = bf16(g.index_heads, "index_weights");
  index_q_codes =
      memory.allocate<std::uint8_t>(tokens * g.index_heads * g.index_dim, "index_q_codes");
  index_scales = f32(g.index_heads, "index_scales");
  logits = f32(g.states(), "logits");
  top_k = memory.allocate<std::int32_t>(tokens * g.top_k, "top_k");
  c4a = {memory.allocate<std::int32_t>(tokens * g.top_k, "c4a indices"),
         memory.allocate<std::int32_t>(tokens + 1, "c4a indptr"), g.top_k};
  c4a_lens = memory.allocate<std::int32_t>(tokens, "c4a lens");
  attention = bf16(g.heads * kHeadDim, "attention");
  lse = f32(g.heads, "lse");
  partial_out =
      memory.allocate_scratch<float>((tokens + g.plan_parts) * g.heads * kHeadDim, "partial_out");
  partial_lse = memory.allocate_scratch<float>((tokens + g.plan_parts) * g.heads, "partial_lse");
  router_logits = f32(g.experts, "router_logits");
  router_weights = f32(g.experts_per_token, "router_weights");
  router_ids = memory.allocate<std::int32_t>(tokens * g.experts_per_token, "router_ids");
  head = bf16(g.hidden, "head");
  out = bf16(g.hidden, "out");
}

}  // namespace plumb::device::decode
