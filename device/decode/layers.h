// SPDX-License-Identifier: Apache-2.0
//
// The layers of a V4 decode step as a list of segments. Between two ops that plumb judges stand
// linear maps. A segment that breaks cannot be part of a piecewise graph: the indexer and the
// attention, whose metadata belongs to the step   [10.5].
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/decode/attention_state.h"
#include "device/decode/calls.h"
#include "device/decode/geometry.h"
#include "device/decode/memory.h"
#include "device/decode/ragged_metadata.h"
#include "device/decode/step_inputs.h"
#include "device/decode/weights.h"
#include "device/decode/workspace.h"

namespace plumb::device::decode {

// "layer 2 attention"
std::string layer_name(std::size_t layer, const char* what);
Cache compressed_cache(Attention kind);  // of a layer that has one

// What a step runs on. `tokens` are those of the padded batch.
struct StepContext {
  const Caller& call;
  const StepInputs& inputs;
  const RaggedMetadata& metadata;
  AttentionState& attention;
  std::int64_t tokens = 0;
};

struct Segment {
  std::string name;
  bool breaks = false;
  std::function<void(const StepContext&)> run;
};

// The paged caches of one layer.
struct LayerCaches {
  std::uint8_t* window;      // [blocks, block_bytes(page)]
  std::uint8_t* compressed;  // C4A and C128A layers: the same
  std::uint8_t* indexer;     // C4A layers: [blocks, page * (index_dim + 4)]
};

class Layers {
 public:
  // `dialect`: what the platform's own encoders write. C4A and C128A caches are e4m3fn   [2.11].
  Layers(const Geometry& geometry, const Requests& requests, plumb_format dialect, Device& device,
         Stream stream, Memory& memory, std::uint64_t seed);

  // In order; valid as long as the layers are.
  std::vector<Segment> segments();
  const std::uint16_t* out() const { return space_.out; }
  // Enqueues the writers of all layers for tokens that nobody computes here: what earlier steps
  // would have left in the caches at the slots of `inputs`.
  void fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens);

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
  void linear(const StepContext& step, const std::string& name, const void* in,
              std::int64_t in_columns, void* out, std::int64_t out_columns,
              plumb_format out_format = PLUMB_BF16) const;
  plumb_mla_cache cache(std::size_t layer, Cache which) const;
  plumb_paged_cache written_cache(std::size_t layer, Cache which) const;
  plumb_paged_cache indexer_cache(std::size_t layer) const;

  const Geometry& geometry_;
  const Requests& requests_;
  plumb_format dialect_;
  Weights weights_;
  Workspace space_;
  std::vector<LayerCaches> caches_;
  int turn_ = 0;  // which of the streams holds the residual
};

}  // namespace plumb::device::decode
