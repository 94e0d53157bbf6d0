// SPDX-License-Identifier: Apache-2.0
//
// Weights of the ops that plumb judges: pure functions of a seed, as large as trained weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"

namespace plumb::device::decode {

inline constexpr float kEps = 1e-6F;  // of every norm and mix
// Outputs of mhc_pre per token: 4 gates into the sublayer, 4 gates out of it, 4 x 4 mixes of the
// streams.
inline constexpr std::int64_t kMixes = 24;

// Weights of mhc_pre and of the ops that contain it.
struct MixTensors {
  float* fn;            // [24, 4 hidden]; mhc_pre_broadcast: [24, hidden]
  float* scale;         // [3]
  float* base;          // [24]
  std::uint16_t* norm;  // bf16 [hidden]
};

// Weights of a compressor, whose window has `width` channels per token.
struct CompressorTensors {
  float* ape = nullptr;           // [tokens per state, width]
  std::uint16_t* norm = nullptr;  // bf16 [channels of a compressed state]
};

struct LayerWeights {
  MixTensors attention, ffn;
  std::uint16_t* q_norm;   // bf16 [q_lora]
  std::uint16_t* kv_norm;  // bf16 [512]
  float* attn_sink;        // [heads]
  float* router_bias;      // [experts]
  // Of the compressed states (C4A and C128A layers), and of the indexer's keys (C4A layers).
  CompressorTensors compressor, index_compressor;
};

// Input of the mix before the first layer: one row that all streams share, or four streams.
enum class FirstMix { broadcast, streams };

struct Weights {
  // Uploads all weights. `prefix`: of the labels, "draft " for the drafter's.
  Weights(const Geometry& geometry, FirstMix first, Device& device, Stream stream,
          EngineMemory& memory, std::uint64_t seed, const std::string& prefix);

  std::vector<LayerWeights> layers;
  float* cos_sin;  // [max_context, 64]
  float* head_fn;  // [4, 4 hidden]
  float* head_scale;
  float* head_base;
  std::uint16_t* final_norm;  // bf16 [hidden]
};

struct V32LayerWeights {
  std::uint16_t *attention_norm, *ffn_norm;  // bf16 [hidden]
  std::uint16_t *q_norm, *kv_norm;           // bf16 [q_lora] and [512]
  float* router_bias;                        // [experts]
};

struct V32Weights {
  // Uploads all weights.
  V32Weights(const Geometry& geometry, Device& device, Stream stream, EngineMemory& memory,
             std::uint64_t seed);

  std::vector<V32LayerWeights> layers;
  float* cos_sin;             // [max_context, 64]
  std::uint16_t* final_norm;  // bf16 [hidden]
};

// Weights that a drafter needs before its layer.
struct MtpWeights {
  MtpWeights(const Geometry& geometry, Device& device, Stream stream, EngineMemory& memory,
             std::uint64_t seed);

  std::uint16_t *enorm, *hnorm;  // bf16 [hidden]
  // With these factors mhc_post computes streams + x.
  float* ones;        // [max_tokens, 4]
  float* identities;  // [max_tokens, 4, 4]
};

}  // namespace plumb::device::decode
