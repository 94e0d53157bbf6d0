// SPDX-License-Identifier: Apache-2.0
#include "decode/models/v4_layers.h"

#include <plumb/ops/hyper_connection.h>
#include <plumb/ops/norm.h>
#include <plumb/ops/router.h>

#include <algorithm>

#include "decode/models/linear.h"

namespace plumb::device::decode {

namespace {

constexpr std::int32_t kSinkhornIterations = 20;
constexpr float kPostMult = 2;

std::unique_ptr<DenseMetadata> make_metadata(const Geometry& geometry, const ModelSite& site) {
  if (geometry.lists == Lists::dense) {
    return std::make_unique<DenseMetadata>(geometry, site.memory);
  }
  return std::make_unique<RaggedMetadata>(geometry, *site.policies.metadata, site.memory,
                                          site.temporaries);
}

}  // namespace

Cache compressed_cache(Attention kind) {
  return kind == Attention::c4a ? Cache::c4a : Cache::c128a;
}

V4Layers::V4Layers(const Geometry& geometry, FirstMix first, bool drafts, const ModelSite& site)
    : geometry_(geometry),
      requests_(site.requests),
      dialect_(site.dialect),
      drafts_(drafts),
      prefix_(drafts ? "draft " : ""),
      layer_policy_(*site.policies.layers),
      scratch_(*site.policies.scratch),
      temporaries_(site.temporaries),
      metadata_(make_metadata(geometry, site)),
      compressor_policy_(*site.policies.compressor),
      compressed_slots_(geometry, compressor_policy_, site.memory),
      weights_(geometry, first, site.device, site.stream, site.memory, site.seed, prefix_),
      space_(geometry, site.memory),
      prefill_(geometry, site.memory),
      indexer_(geometry, Cache::c4a, site) {
  for (std::size_t i = 0; i < geometry.layers.size(); ++i) {
    caches_.push_back(allocate_caches(i, site.memory));
  }
  const std::int64_t elements = geometry.max_tokens() * geometry.heads * kHeadDim;
  site.device.fill(space_.attention, kUnattended,
                   static_cast<std::size_t>(elements) * sizeof(std::uint16_t), site.stream);
}

LayerCaches V4Layers::allocate_caches(std::size_t i, EngineMemory& memory) const {
  const auto allocate = [&](Cache which, std::int64_t bytes_of_block, const char* name) {
    return memory.allocate<std::uint8_t>(requests_.blocks(which) * bytes_of_block,
                                         layer_name(i, name));
  };
  const auto page = [&](Cache which) { return geometry_.pages[static_cast<int>(which)]; };
  LayerCaches caches{allocate(Cache::window, block_bytes(page(Cache::window)), "window cache")};
  const Attention kind = geometry_.layers[i];
  if (kind == Attention::window) return caches;
  const Cache which = compressed_cache(kind);
  caches.compressed = allocate(which, block_bytes(page(which)), "compressed cache");
  const auto allocate_partial = [&](const PartialStateLayout& states, const char* name) {
    return allocate(states.cache, page(states.cache) * states.row_bytes(), name);
  };
  caches.partial = allocate_partial(partial_states(kind), "partial states");
  if (kind == Attention::c4a) {
    const std::int64_t bytes = page(Cache::c4a) * (geometry_.index_dim + kIndexScaleBytes);
    caches.indexer = allocate(Cache::c4a, bytes, "indexer cache");
    caches.index_partial =
        allocate_partial(index_partial_states(geometry_), "index partial states");
  }
  return caches;
}

CallPlace V4Layers::place(std::size_t layer, const char* what) const {
  CallPlace place = layer_place(layer, what);
  place.name = prefix_ + place.name;
  place.draft = drafts_;
  return place;
}

std::string V4Layers::layer_name(std::size_t layer, const char* what) const {
  return place(layer, what).name;
}

void V4Layers::build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  metadata_->build(call, inputs, plan);
  compressed_slots_.build(call, inputs, plan.attended, plan.requests);
  const auto& layers = geometry_.layers;
  if (std::ranges::find(layers, Attention::c4a) == layers.end()) return;
  indexer_.build_schedule(call, inputs, plan);
}

void V4Layers::add_segments(std::vector<Segment>& all) {
  for (std::size_t i = 0; i < geometry_.layers.size(); ++i) {
    all.push_back({.name = layer_name(i, "projections"),
                   .run = [this, i](const StepContext& step) { project(step, i); }});
    if (geometry_.layers[i] == Attention::c4a) add_indexer(all, i);
    add_attention(all, i);
    all.push_back(
        {.name = layer_name(i, "feed-forward"), .run = [this, i](const StepContext& step) {
           finish_attention(step, i);
           feed_forward(step, i);
         }});
  }
}

void V4Layers::add_indexer(std::vector<Segment>& all, std::size_t i) {
  const std::int64_t bytes = geometry_.top_k * static_cast<std::int64_t>(sizeof(std::int32_t));
  all.push_back({.name = layer_name(i, "indexer"),
                 .breaks = true,
                 .run = [this, i](const StepContext& step) { run_indexer(step, i); },
                 .result_bytes = bytes,
                 .return_at = [this](void* at) { space_.top_k = static_cast<std::int32_t*>(at); }});
}

void V4Layers::add_attention(std::vector<Segment>& all, std::size_t i) {
  const std::int64_t bytes =
      geometry_.heads * kHeadDim * static_cast<std::int64_t>(sizeof(std::uint16_t));
  all.push_back(
      {.name = layer_name(i, "attention"),
       .breaks = true,
       .run = [this, i](const StepContext& step) { attend(step, i); },
       .result_bytes = bytes,
       .return_at = [this](void* at) { space_.attention = static_cast<std::uint16_t*>(at); }});
}

// All four streams of the first layer start as the embedding   [6.5].
void V4Layers::mix_broadcast(const StepContext& step, const std::uint16_t* embeds) {
  const MixTensors& weights = weights_.layers[0].attention;
  const Residual to = residual(kAttention);
  step.call("mhc_pre_broadcast", place(0, "attention mix"),
            plumb_mhc_pre_broadcast_params{.residual = embeds,
                                           .fn = weights.fn,
                                           .scale = weights.scale,
                                           .base = weights.base,
                                           .norm_weight = weights.norm,
                                           .residual_out = to.streams,
                                           .post = to.post,
                                           .comb = to.comb,
                                           .layer_input = space_.layer_input,
                                           .partial_mixes = space_.partial_mixes,
                                           .partial_square_sums = space_.partial_square_sums,
                                           .tokens = step.tokens,
                                           .hidden = geometry_.hidden,
                                           .residual_token_stride = geometry_.hidden,
                                           .splits = kSplits,
                                           .residual_out_token_stride = kStreams * geometry_.hidden,
                                           .residual_out_slot_stride = geometry_.hidden,
                                           .post_row_stride = kStreams,
                                           .comb_token_stride = kStreams * kStreams,
                                           .layer_input_row_stride = geometry_.hidden,
                                           .sinkhorn_iterations = kSinkhornIterations,
                                           .rms_eps = kEps,
                                           .pre_eps = kEps,
                                           .sinkhorn_eps = kEps,
                                           .norm_eps = kEps,
                                           .post_mult = kPostMult,
                                           .stream = nullptr});
}

void V4Layers::mix_first(const StepContext& step, const Residual& from) {
  mix(step, place(0, "attention mix"), weights_.layers[0].attention, from, residual(kAttention));
}

Residual V4Layers::residual(int turn) const {
  return {space_.streams[turn], space_.post[turn], space_.comb[turn]};
}

void V4Layers::turn_back(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  step.call("inverse_rope", place(i, "inverse rope"),
            plumb_inverse_rope_params{.x = space_.attention,
                                      .positions = step.inputs.positions,
                                      .cos_sin = weights_.cos_sin,
                                      .tokens = step.tokens,
                                      .heads = g.heads,
                                      .x_token_stride = g.heads * kHeadDim,
                                      .stream = nullptr});
}

void V4Layers::finish_attention(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  if (layer_policy_.turns_back()) turn_back(step, i);
  linear(step, place(i, "output projection"), Projection::output, space_.attention,
         g.heads * kHeadDim, space_.x, g.hidden);
  mix(step, place(i, "feed-forward mix"), weights_.layers[i].ffn, residual(kAttention),
      residual(kFeedForward));
}

void V4Layers::repeat_norm(const StepContext& step, std::size_t i) {
  step.call("rms_norm", place(i, "feed-forward norm"),
            plumb_rms_norm_params{.x = space_.layer_input,
                                  .weight = weights_.layers[i].ffn.norm,
                                  .out = space_.layer_input,
                                  .tokens = step.tokens,
                                  .hidden = geometry_.hidden,
                                  .x_row_stride = geometry_.hidden,
                                  .out_row_stride = geometry_.hidden,
                                  .eps = kEps,
                                  .rounding = PLUMB_ROUND_ONCE,
                                  .stream = nullptr});
}

void V4Layers::feed_forward(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  if (layer_policy_.repeats_ffn_norm()) repeat_norm(step, i);
  linear(step, place(i, "router projection"), Projection::router, space_.layer_input, g.hidden,
         space_.router_logits, g.experts, PLUMB_F32);
  step.call("sqrt_softplus_topk", place(i, "router"),
            plumb_sqrt_softplus_topk_params{.logits = space_.router_logits,
                                            .bias = weights_.layers[i].router_bias,
                                            .is_padding = step.inputs.is_padding,
                                            .weights = space_.router_weights,
                                            .ids = space_.router_ids,
                                            .token_expert_indices = nullptr,
                                            .tokens = step.tokens,
                                            .logits_row_stride = g.experts,
                                            .experts = g.experts,
                                            .topk = g.experts_per_token,
                                            .weights_row_stride = g.experts_per_token,
                                            .ids_row_stride = g.experts_per_token,
                                            .logits_format = PLUMB_F32,
                                            .weight = PLUMB_WEIGHT_SCORE,
                                            .renormalize = 1,
                                            .routed_scaling_factor = g.routed_scaling,
                                            .stream = nullptr});
  linear(step, place(i, "experts"), Projection::experts, space_.layer_input, g.hidden, space_.x,
         g.hidden);
  if (i + 1 < g.layers.size()) {
    mix(step, place(i + 1, "attention mix"), weights_.layers[i + 1].attention,
        residual(kFeedForward), residual(kAttention));
  }
}

// Adds the sublayer's result to the streams and makes the input of the next sublayer from them.
void V4Layers::mix(const StepContext& step, const CallPlace& place, const MixTensors& weights,
                   const Residual& from, const Residual& to) {
  step.call(
      "mhc_fused_post_pre", place,
      plumb_mhc_fused_post_pre_params{.x = space_.x,
                                      .residual = from.streams,
                                      .post_before = from.post,
                                      .comb_before = from.comb,
                                      .fn = weights.fn,
                                      .scale = weights.scale,
                                      .base = weights.base,
                                      .norm_weight = weights.norm,
                                      .residual_out = to.streams,
                                      .post = to.post,
                                      .comb = to.comb,
                                      .layer_input = space_.layer_input,
                                      .partial_mixes = space_.partial_mixes,
                                      .partial_square_sums = space_.partial_square_sums,
                                      .tokens = step.tokens,
                                      .hidden = geometry_.hidden,
                                      .residual_token_stride = kStreams * geometry_.hidden,
                                      .residual_slot_stride = geometry_.hidden,
                                      .splits = kSplits,
                                      .residual_out_token_stride = kStreams * geometry_.hidden,
                                      .residual_out_slot_stride = geometry_.hidden,
                                      .post_row_stride = kStreams,
                                      .comb_token_stride = kStreams * kStreams,
                                      .layer_input_row_stride = geometry_.hidden,
                                      .sinkhorn_iterations = kSinkhornIterations,
                                      .rms_eps = kEps,
                                      .pre_eps = kEps,
                                      .sinkhorn_eps = kEps,
                                      .norm_eps = kEps,
                                      .post_mult = kPostMult,
                                      .stream = nullptr,
                                      .unrounded_rows = kUnroundedRows});
}

void V4Layers::read_out(const StepContext& step) {
  const Geometry& g = geometry_;
  const Residual from = residual(kFeedForward);
  std::uint16_t* const streams = space_.streams[kAttention];
  step.call("mhc_post", prefix_ + "last mix",
            plumb_mhc_post_params{.x = space_.x,
                                  .residual = from.streams,
                                  .post = from.post,
                                  .comb = from.comb,
                                  .out = streams,
                                  .tokens = step.tokens,
                                  .hidden = g.hidden,
                                  .residual_token_stride = kStreams * g.hidden,
                                  .residual_slot_stride = g.hidden,
                                  .out_token_stride = kStreams * g.hidden,
                                  .out_slot_stride = g.hidden,
                                  .stream = nullptr});
  step.call("hc_head", prefix_ + "head mix",
            plumb_hc_head_params{.hidden_states = streams,
                                 .fn = weights_.head_fn,
                                 .scale = weights_.head_scale,
                                 .base = weights_.head_base,
                                 .out = space_.head,
                                 .tokens = step.tokens,
                                 .hidden = g.hidden,
                                 .hidden_token_stride = kStreams * g.hidden,
                                 .hidden_slot_stride = g.hidden,
                                 .out_row_stride = g.hidden,
                                 .rms_eps = kEps,
                                 .hc_eps = kEps,
                                 .rounding = PLUMB_ROUND_ONCE,
                                 .stream = nullptr});
}

}  // namespace plumb::device::decode
