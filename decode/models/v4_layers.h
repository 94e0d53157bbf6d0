// SPDX-License-Identifier: Apache-2.0
//
// Decoder layers of V4 on ROCm, from the mix before the first layer to the head after the last:
// sliding window, compressed states, ragged metadata   [2]. Target and drafter are made of them.
// Attention and indexer process prefill tokens first, then decode tokens; all other ops process
// both together. Seeded linear maps stand between the ops that plumb judges.
#pragma once

#include <plumb/ops/compressor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"
#include "decode/engine/model.h"
#include "decode/engine/model_site.h"
#include "decode/metadata/compressed_slots.h"
#include "decode/metadata/ragged_metadata.h"
#include "decode/models/indexer.h"
#include "decode/models/prefill_workspace.h"
#include "decode/models/weights.h"
#include "decode/models/workspace.h"

namespace plumb::device::decode {

inline constexpr float kV4SmScale = 0.0441941738F;     // 512^-0.5: YaRN without mscale
inline constexpr std::uint64_t kV4EmbeddingSeed = 11;  // target and drafter share the embedding

Cache compressed_cache(Attention kind);  // of a layer that is not Attention::window

// The paged caches of one layer.
struct LayerCaches {
  std::uint8_t* window;                   // [blocks, block_bytes(page)]
  std::uint8_t* compressed = nullptr;     // C4A and C128A layers: same layout
  std::uint8_t* indexer = nullptr;        // C4A layers: [blocks, page * (index_dim + 4)]
  std::uint8_t* partial = nullptr;        // partial states of `compressed`: see PartialStateLayout
  std::uint8_t* index_partial = nullptr;  // partial states of `indexer`
};

// Partial states of a compressor, fp32 [blocks, page, 2 * width]. Those of the states and of the
// indexer's keys of a layer have the same slots.
struct PartialStateLayout {
  Cache cache;  // of the block table and the slots
  std::int64_t ratio, head_dim, overlap;
  std::int64_t width() const { return (1 + overlap) * head_dim; }
  std::int64_t row_bytes() const { return 2 * width() * static_cast<std::int64_t>(sizeof(float)); }
};
PartialStateLayout partial_states(Attention kind);                  // C4A and C128A layers
PartialStateLayout index_partial_states(const Geometry& geometry);  // C4A layers

// Streams between two sublayers, with the factors that add a sublayer's result to them.
struct Residual {
  std::uint16_t* streams;  // bf16 [tokens, 4, hidden]
  float *post, *comb;      // fp32 [tokens, 4] and [tokens, 4, 4]
};

class V4Layers {
 public:
  // `first`: input of the first mix. `drafts`: these layers are the drafter's, which have matrices
  // of their own.
  V4Layers(const Geometry& geometry, FirstMix first, bool drafts, const ModelSite& site);

  void build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan);
  void fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                   Filled filled);

  // Mixes before the first layer. A model calls one of these two before the segments below.
  void mix_broadcast(const StepContext& step, const std::uint16_t* embeds);
  // Adds space().x to the streams of `from` and makes the first layer's input from them.
  void mix_first(const StepContext& step, const Residual& from);
  // Adds the segments of all layers. Those of indexer and attention break the graph.
  void add_segments(std::vector<Segment>& all);
  // Adds the last sublayer's result to the streams, and reduces the streams to one row:
  // space().head.
  void read_out(const StepContext& step);

  std::vector<CacheView> caches() const;
  Workspace& space() { return space_; }
  const Workspace& space() const { return space_; }
  const Weights& weights() const { return weights_; }
  // bf16 [tokens, 4, hidden], valid after read_out: the drafter's input.
  const std::uint16_t* final_streams() const { return space_.streams[kAttention]; }

 private:
  // Indices into space().streams. Each sublayer reads one and writes the other.
  static constexpr int kAttention = 0, kFeedForward = 1;

  void project(const StepContext& step, std::size_t layer);
  struct CacheWrite {
    const Caller& call;
    const StepInputs& inputs;
    std::int64_t tokens;
    bool compresses = true;  // also writes the states that the tokens complete
  };
  void write_window(const CacheWrite& step, std::size_t layer);
  // The compressor (v4_compressor.cpp): saves the partial states of the tokens, then writes the
  // compressed states and index keys that the tokens complete.
  void write_states(const CacheWrite& step, std::size_t layer);
  void compress(const CacheWrite& step, std::size_t layer);
  void compress_index(const CacheWrite& step, std::size_t layer);
  // Arguments that both compressors of a layer have in common.
  struct CompressorCall {
    PartialStateLayout states;
    std::uint8_t* data;  // of the partial states
    const float* kv_score;
    const CompressorTensors& weights;
  };
  void save(const CacheWrite& step, const CallPlace& place, const CompressorCall& of) const;
  plumb_compress_norm_rope_insert_params compression(const CacheWrite& step,
                                                     const CompressorCall& of) const;
  plumb_state_cache state_cache(const PartialStateLayout& states, std::uint8_t* data) const;
  void prepare_indexer(const StepContext& step, std::size_t layer);
  void run_indexer(const StepContext& step, std::size_t layer);
  void attend(const StepContext& step, std::size_t layer);
  void attend_decode(const StepContext& step, std::size_t layer);
  // With memory for the results of its parts.
  void attend_split(const StepContext& step, std::size_t layer,
                    plumb_sparse_mla_decode_params params, MlaState& state);
  void attend_prefill(const StepContext& step, std::size_t layer, std::size_t chunk);
  void gather_states(const StepContext& step, const CallPlace& place, std::size_t layer,
                     const PrefillChunk& chunk);
  void combine(const StepContext& step, const CallPlace& place, Attention kind,
               const PrefillChunk& chunk);
  plumb_mla_candidates c4a_candidates() const;
  void map_top_k(const StepContext& step, std::size_t layer);
  void turn_back(const StepContext& step, std::size_t layer);
  void finish_attention(const StepContext& step, std::size_t layer);
  void feed_forward(const StepContext& step, std::size_t layer);
  void repeat_norm(const StepContext& step, std::size_t layer);
  void mix(const StepContext& step, const CallPlace& place, const MixTensors& weights,
           const Residual& from, const Residual& to);
  Residual residual(int turn) const;
  void add_indexer(std::vector<Segment>& all, std::size_t layer);
  void add_attention(std::vector<Segment>& all, std::size_t layer);
  LayerCaches allocate_caches(std::size_t layer, EngineMemory& memory) const;
  plumb_mla_cache cache(std::size_t layer, Cache which) const;
  plumb_paged_cache written_cache(std::size_t layer, Cache which) const;
  plumb_paged_cache indexer_cache(std::size_t layer) const;
  std::string layer_name(std::size_t layer, const char* what) const;  // "layer 2 attention"
  CallPlace place(std::size_t layer, const char* what) const;

  const Geometry& geometry_;
  const Requests& requests_;
  plumb_format dialect_;
  const bool drafts_;
  const std::string prefix_;  // first part of the names of calls
  const LayerPolicy& layer_policy_;
  const ScratchPolicy& scratch_;
  CachingAllocator& temporaries_;
  std::unique_ptr<DenseMetadata> metadata_;
  const CompressorPolicy& compressor_policy_;
  CompressedSlots compressed_slots_;
  Weights weights_;
  Workspace space_;
  PrefillWorkspace prefill_;
  Indexer indexer_;
  std::vector<LayerCaches> caches_;
};

}  // namespace plumb::device::decode
