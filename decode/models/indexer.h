// SPDX-License-Identifier: Apache-2.0
//
// The lightning indexer of a layer   [4.6]. Prefill chunks score gathered keys, decodes score the
// paged cache, and both write rows of one top-k buffer. C4A layers of V4 and all layers of V3.2
// have an indexer.
#pragma once

#include <plumb/ops/cache.h>

#include <cstdint>

#include "decode/engine/model.h"
#include "decode/engine/model_site.h"
#include "decode/metadata/index_schedule.h"
#include "decode/policies/top_k_policy.h"

namespace plumb::device::decode {

// Lower limit of amax in an FP8 scale (per head of queries, per group of a key), as in vLLM's
// kernels.
inline constexpr float kAmaxFloor = 1e-4F;

// Buffers of an indexer, shared by all layers and chunks. Elements that a call does not write keep
// old values, which no kernel reads.
struct IndexerWorkspace {
  IndexerWorkspace(const Geometry& geometry, EngineMemory& memory);

  std::int64_t key_columns;    // largest number of keys of a chunk
  std::uint8_t* keys;          // fp8 [key_columns, index_dim]: keys of a chunk
  float *key_scales, *logits;  // [key_columns], [max_tokens, key_columns]
  std::uint8_t* packed_codes;  // codes of the queries, in a packed batch
  float* packed_scales;        // weights of the queries, in a packed batch
  std::int32_t* packed_top_k;  // [max_decode_tokens, top_k]
};

class Indexer {
 public:
  // `keys`: the cache whose block table addresses the indexer's keys.
  Indexer(const Geometry& geometry, Cache keys, const ModelSite& site);

  // Enqueues the schedule that a step of this plan reads.
  void build_schedule(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
    schedule_.build(call, inputs, plan);
  }

  struct Layer {
    CallPlace place;            // "layer 2 "
    plumb_paged_cache cache;    // cache of the keys
    const std::uint8_t* codes;  // fp8 [tokens, index_heads, index_dim]: queries
    const float* scales;        // [tokens, index_heads]
    float* logits;              // [tokens, states], decodes only
    std::int32_t* top_k;        // [tokens, top_k]
  };
  void run(const StepContext& step, const Layer& layer) const;

 private:
  void reset(const StepContext& step, const CallPlace& place, std::int32_t* top_k,
             std::int64_t rows) const;
  // Arguments of one launch over the paged cache.
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
  void gather_keys(const StepContext& step, const Layer& layer, std::size_t chunk) const;

  const Geometry& geometry_;
  Cache keys_;
  plumb_format dialect_;
  const TopKPolicy& policy_;
  const IndexPolicy& index_policy_;
  IndexSchedule schedule_;
  IndexerWorkspace space_;
};

}  // namespace plumb::device::decode
