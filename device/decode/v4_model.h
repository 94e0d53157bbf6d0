// SPDX-License-Identifier: Apache-2.0
//
// A step of V4 on ROCm: layers over a sliding window and compressed states, ragged metadata [2].
// Attention and indexer take prefill tokens first, then those that decode; all else takes them
// together. Between two ops that plumb judges stand linear maps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/decode/geometry.h"
#include "device/decode/memory.h"
#include "device/decode/model.h"
#include "device/decode/prefill_workspace.h"
#include "device/decode/ragged_metadata.h"
#include "device/decode/top_k_policy.h"
#include "device/decode/weights.h"
#include "device/decode/workspace.h"

namespace plumb::device::decode {

inline constexpr float kSmScale = 0.0323520F;  // 512^-0.55, as FlashMLA's tests have it   [1.3]

// "layer 2 attention"
std::string layer_name(std::size_t layer, const char* what);
std::string chunk_name(std::size_t layer, const char* what, std::size_t chunk);
Cache compressed_cache(Attention kind);  // of a layer that has one

// The paged caches of one layer.
struct LayerCaches {
  std::uint8_t* window;      // [blocks, block_bytes(page)]
  std::uint8_t* compressed;  // C4A and C128A layers: the same
  std::uint8_t* indexer;     // C4A layers: [blocks, page * (index_dim + 4)]
};

class V4Model final : public Model {
 public:
  // What the constructor leaves in `memory` keeps its address. `dialect`: what the platform's own
  // encoders write; C4A and C128A caches are e4m3fn   [2.11]. `policies` outlive the model.
  V4Model(const Geometry& geometry, const Requests& requests, plumb_format dialect, Device& device,
          const Policies& policies, Stream stream, Memory& memory, CachingAllocator& temporaries,
          std::uint64_t seed);

  void build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) override;
  std::vector<Segment> segments() override;
  void fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens) override;
  std::vector<CacheView> caches() const override;
  const std::uint16_t* out() const override { return space_.out; }

 private:
  void embed(const StepContext& step);
  void project(const StepContext& step, std::size_t layer);
  struct Writer {
    const Caller& call;
    const StepInputs& inputs;
    std::int64_t tokens;
  };
  void write_window(const Writer& step, std::size_t layer);
  void write_states(const Writer& step, std::size_t layer);
  void prepare_indexer(const StepContext& step, std::size_t layer);
  void run_indexer(const StepContext& step, std::size_t layer);
  void reset(const StepContext& step, const std::string& name, std::int32_t* top_k,
             std::int64_t rows) const;
  // What one launch of the decode indexer ranks.
  struct DecodeIndexer {
    const std::uint8_t* codes;
    const float* scales;
    const std::int32_t* lens;  // [requests, next_n]
    std::int32_t* top_k;
    std::int64_t requests, next_n;
  };
  void rank_decode(const StepContext& step, std::size_t layer, const DecodeIndexer& batch);
  void rank_packed(const StepContext& step, std::size_t layer);
  void rank_prefill(const StepContext& step, std::size_t layer, std::size_t chunk);
  void gather_keys(const StepContext& step, const std::string& name, std::size_t layer,
                   const PrefillChunk& chunk);
  void attend(const StepContext& step, std::size_t layer);
  void attend_decode(const StepContext& step, std::size_t layer);
  void attend_prefill(const StepContext& step, std::size_t layer, std::size_t chunk);
  void gather_states(const StepContext& step, const std::string& name, std::size_t layer,
                     const PrefillChunk& chunk);
  void combine(const StepContext& step, const std::string& name, Attention kind,
               const PrefillChunk& chunk);
  void map_top_k(const StepContext& step, std::size_t layer);
  void finish_attention(const StepContext& step, std::size_t layer);
  void feed_forward(const StepContext& step, std::size_t layer);
  void mix(const StepContext& step, const std::string& name, const MixWeights& weights);
  void read_out(const StepContext& step);
  void linear(const StepContext& step, const std::string& name, const void* in,
              std::int64_t in_columns, void* out, std::int64_t out_columns,
              plumb_format out_format = PLUMB_BF16) const;
  plumb_mla_cache cache(std::size_t layer, Cache which) const;
  plumb_paged_cache written_cache(std::size_t layer, Cache which) const;
  plumb_paged_cache indexer_cache(std::size_t layer) const;

  const Geometry& geometry_;
  const Requests& requests_;
  plumb_format dialect_;
  const TopKPolicy& policy_;
  RaggedMetadata metadata_;
  Weights weights_;
  Workspace space_;
  PrefillWorkspace prefill_;
  std::vector<LayerCaches> caches_;
  int turn_ = 0;  // which of the streams holds the residual
};

}  // namespace plumb::device::decode
