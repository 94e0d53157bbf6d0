// SPDX-License-Identifier: Apache-2.0
//
// A decode step of V4 on ROCm: layers over a sliding window and compressed states, ragged metadata
// [2]. Between two ops that plumb judges stand linear maps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/decode/geometry.h"
#include "device/decode/linear.h"
#include "device/decode/memory.h"
#include "device/decode/model.h"
#include "device/decode/ragged_metadata.h"
#include "device/decode/weights.h"
#include "device/decode/workspace.h"

namespace plumb::device::decode {

Cache compressed_cache(Attention kind);  // of a layer that has one

// The paged caches of one layer.
struct LayerCaches {
  std::uint8_t* window;      // [blocks, block_bytes(page)]
  std::uint8_t* compressed;  // C4A and C128A layers: the same
  std::uint8_t* indexer;     // C4A layers: [blocks, page * (index_dim + 4)]
};

class V4Model final : public Model {
 public:
  static constexpr GraphSupport kGraphSupport = GraphSupport::uniform_batch;

  // What the constructor leaves in `memory` keeps its address. `dialect`: what the platform's own
  // encoders write; C4A and C128A caches are e4m3fn   [2.11].
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
  void map_top_k(const StepContext& step, std::size_t layer);
  void attend(const StepContext& step, std::size_t layer);
  void finish_attention(const StepContext& step, std::size_t layer);
  void feed_forward(const StepContext& step, std::size_t layer);
  void mix(const StepContext& step, const std::string& name, const MixWeights& weights);
  void read_out(const StepContext& step);
  plumb_mla_cache cache(std::size_t layer, Cache which) const;
  plumb_paged_cache written_cache(std::size_t layer, Cache which) const;
  plumb_paged_cache indexer_cache(std::size_t layer) const;

  const Geometry& geometry_;
  const Requests& requests_;
  plumb_format dialect_;
  RaggedMetadata metadata_;
  Weights weights_;
  Workspace space_;
  std::vector<LayerCaches> caches_;
  int turn_ = 0;  // which of the streams holds the residual
};

}  // namespace plumb::device::decode
