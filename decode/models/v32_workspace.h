// SPDX-License-Identifier: Apache-2.0
//
// Buffers between the ops of a V3.2 step, shared by all layers.
#pragma once

#include <cstdint>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"

namespace plumb::device::decode {

inline constexpr std::int64_t kV32KeyDim = kHeadDim + kRopeDim;  // 512 latent dims, 64 with RoPE
inline constexpr std::int64_t kV32TokenBytes = 656;              // per cached token   [1.1]

// Each buffer has max_tokens rows.
struct V32Workspace {
  V32Workspace(const Geometry& geometry, EngineMemory& memory);

  std::uint16_t *residual, *hidden, *x;  // bf16 [tokens, hidden]; `hidden`: the step's result
  std::uint16_t *q_latent, *kv_latent,
      *k_rope;  // bf16 [tokens, q_lora], [tokens, 512], [tokens, 64]
  std::uint16_t *q_normed, *kv_normed;
  std::uint16_t* q;                                     // bf16 [tokens, heads, 576]
  std::uint16_t *index_keys, *index_q, *index_weights;  // bf16
  std::uint8_t* index_q_codes;                          // fp8 [tokens, index_heads, index_dim]
  float *index_scales, *logits;  // fp32 [tokens, index_heads], [tokens, max_context]
  std::int32_t* top_k;           // [tokens, top_k]
  std::uint16_t* attention;      // bf16 [tokens, heads, 512]
  float *lse, *partial_out, *partial_lse;
  float *router_logits, *router_weights;
  std::int32_t* router_ids;
};

}  // namespace plumb::device::decode
