// SPDX-License-Identifier: Apache-2.0
//
// The lightning indexer of a layer   [4.6]: prefill chunks over gathered keys, what decodes over
// the paged cache, both into the rows of one top-k buffer. C4A layers of V4 and all of V3.2 have
// one.
#pragma once

#include <plumb/ops/cache.h>

#include <cstdint>

#include "decode/engine/model.h"
#include "decode/policies/top_k_policy.h"

namespace plumb::device::decode {

// Least amax of what shares a scale: a head's queries, a group of a key. As in vLLM's kernels.
inline constexpr float kAmaxFloor = 1e-4F;

// Buffers of an indexer, shared by all layers and chunks. What is not written stays stale, and
// nothing reads it.
struct IndexerWorkspace {
  IndexerWorkspace(const Geometry& geometry, EngineMemory& memory);

  std::int64_t key_columns;    // most keys of a chunk
  std::uint8_t* keys;          // fp8 [key_columns, index_dim], of a chunk
  float *key_scales, *logits;  // [key_columns], [max_tokens, key_columns]
  std::uint8_t* packed_codes;  // of a packed batch: the queries' codes
  float* packed_scales;        // and their weights
  std::int32_t* packed_top_k;  // [max_decode_tokens, top_k]
};

class Indexer {
 public:
  // `keys`: the cache whose block table its keys have.
  Indexer(const Geometry& geometry, Cache keys, plumb_format dialect, const TopKPolicy& policy,
          EngineMemory& memory);

  struct Layer {
    CallPlace place;            // "layer 2 "
    plumb_paged_cache cache;    // of keys
    const std::uint8_t* codes;  // fp8 [tokens, index_heads, index_dim]: queries
    const float* scales;        // [tokens, index_heads]
    float* logits;              // [tokens, states], of what decodes
    std::int32_t* top_k;        // [tokens, top_k]
    const std::int32_t* lens;   // [prefill requests]: keys of each
  };
  void run(const StepContext& step, const Layer& layer) const;

 private:
  void reset(const StepContext& step, const CallPlace& place, std::int32_t* top_k,
             std::int64_t rows) const;
  // What one launch over the paged cache ranks.
  struct Batch {
    const std::uint8_t* codes;
    const float* scales;
    const std::int32_t* lens;  // [requests, next_n]
    std::int32_t* top_k;
    std::int64_t requests, next_n;
  };
  void rank_decode(const StepContext& step, const Layer& layer, const Batch& batch) const;
  void rank_packed(const StepContext& step, const Layer& layer) const;
  void rank_prefill(const StepContext& step, const Layer& layer, std::size_t chunk) const;
  void gather_keys(const StepContext& step, const CallPlace& place, const Layer& layer,
                   const PrefillChunk& chunk) const;

  const Geometry& geometry_;
  Cache keys_;
  plumb_format dialect_;
  const TopKPolicy& policy_;
  IndexerWorkspace space_;
};

}  // namespace plumb::device::decode
