// SPDX-License-Identifier: Apache-2.0
//
// Buffers between the ops of a step, shared by all layers: each layer overwrites the results of the
// layer before.
#pragma once

#include <cstdint>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"
#include "decode/metadata/ragged_metadata.h"

namespace plumb::device::decode {

inline constexpr std::int32_t kSplits = 2;          // split-K parts in mhc_pre and related ops
inline constexpr std::int64_t kUnroundedRows = 16;  // of mhc_fused_post_pre, as in vLLM 0.22.1

// Each buffer has max_tokens rows.
struct Workspace {
  Workspace(const Geometry& geometry, EngineMemory& memory);

  std::uint16_t *embeds, *layer_input, *x;     // bf16 [tokens, hidden]
  std::uint16_t* streams[2];                   // bf16 [tokens, 4, hidden], used alternately
  float *post[2], *comb[2];                    // fp32 [tokens, 4] and [tokens, 4, 4], alternately
  float *partial_mixes, *partial_square_sums;  // fp32 [splits, tokens, 24] and [splits, tokens]
  std::uint16_t *q_latent, *kv_latent;         // bf16 [tokens, q_lora] and [tokens, 512]
  std::uint16_t *q_normed, *kv_normed;
  std::uint16_t *q_heads, *q;  // bf16 [tokens, heads, 512]
  // fp32 [tokens, 2 * width]: kv, then scores; of the compressor of states and that of index keys.
  float *state_kv_score, *index_kv_score;
  std::uint16_t *index_q, *index_weights;  // bf16
  std::uint8_t* index_q_codes;             // fp8 [tokens, index_heads, index_dim]
  float *index_scales, *logits;            // fp32 [tokens, index_heads], [tokens, states]
  std::int32_t* top_k;                     // [tokens, top_k]
  Ragged c4a;
  std::int32_t* c4a_lens;
  std::uint16_t* attention;  // bf16 [tokens, heads, 512]
  float *lse, *partial_out, *partial_lse;
  float *router_logits, *router_weights;
  std::int32_t* router_ids;
  std::uint16_t* head;  // bf16 [tokens, hidden]
  std::uint16_t* out;   // bf16 [tokens, hidden]: result of the step
};

}  // namespace plumb::device::decode
