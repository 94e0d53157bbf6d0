// SPDX-License-Identifier: Apache-2.0
#include "device/decode/v4_model.h"

#include "device/decode/stand_ins.h"

namespace plumb::device::decode {

namespace {

constexpr std::int32_t kSinkhornIterations = 20;
constexpr float kEps = 1e-6F, kPostMult = 2, kRoutedScaling = 1.5F;
constexpr std::uint64_t kEmbeddingSeed = 11;

// FNV-1a: each projection its own matrix.
std::uint64_t seed_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

std::string layer_name(std::size_t layer, const char* what) {
  return "layer " + std::to_string(layer) + " " + what;
}

std::string chunk_name(std::size_t layer, const char* what, std::size_t chunk) {
  return layer_name(layer, what) + " of chunk " + std::to_string(chunk);
}

Cache compressed_cache(Attention kind) {
  return kind == Attention::c4a ? Cache::c4a : Cache::c128a;
}

V4Model::V4Model(const Geometry& geometry, const Requests& requests, plumb_format dialect,
                 Device& device, const Policies& policies, Stream stream, Memory& memory,
                 CachingAllocator& temporaries, std::uint64_t seed)
    : geometry_(geometry),
      requests_(requests),
      dialect_(dialect),
      policy_(*policies.top_k),
      metadata_(geometry, *policies.metadata, memory, temporaries),
      weights_(geometry, device, stream, memory, seed),
      space_(geometry, memory),
      prefill_(geometry, memory) {
  for (std::size_t i = 0; i < geometry.layers.size(); ++i) {
    const auto allocate = [&](Cache which, std::int64_t bytes_of_block, const char* name) {
      return memory.allocate<std::uint8_t>(requests.blocks(which) * bytes_of_block,
                                           layer_name(i, name));
    };
    const auto page = [&](Cache which) { return geometry.pages[static_cast<int>(which)]; };
    LayerCaches caches{allocate(Cache::window, block_bytes(page(Cache::window)), "window cache"),
                       nullptr, nullptr};
    const Attention kind = geometry.layers[i];
    if (kind != Attention::window) {
      const Cache which = compressed_cache(kind);
      caches.compressed = allocate(which, block_bytes(page(which)), "compressed cache");
    }
    if (kind == Attention::c4a) {
      const std::int64_t bytes = page(Cache::c4a) * (geometry.index_dim + kIndexScaleBytes);
      caches.indexer = allocate(Cache::c4a, bytes, "indexer cache");
    }
    caches_.push_back(caches);
  }
}

void V4Model::build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  metadata_.build(call, inputs, plan);
}

std::vector<Segment> V4Model::segments() {
  std::vector<Segment> all;
  const auto add = [&](std::string name, bool breaks, std::function<void(const StepContext&)> run) {
    all.push_back({std::move(name), breaks, std::move(run)});
  };
  add("embedding", false, [this](const StepContext& step) { embed(step); });
  for (std::size_t i = 0; i < geometry_.layers.size(); ++i) {
    const bool c4a = geometry_.layers[i] == Attention::c4a;
    add(layer_name(i, "projections"), false,
        [this, i](const StepContext& step) { project(step, i); });
    if (c4a) {
      add(layer_name(i, "indexer"), true,
          [this, i](const StepContext& step) { run_indexer(step, i); });
    }
    add(layer_name(i, "attention"), true, [this, i](const StepContext& step) { attend(step, i); });
    add(layer_name(i, "feed-forward"), false, [this, i](const StepContext& step) {
      finish_attention(step, i);
      feed_forward(step, i);
    });
  }
  add("head", false, [this](const StepContext& step) { read_out(step); });
  return all;
}

// Streams of the first layer are four times the embedding   [6.5].
void V4Model::embed(const StepContext& step) {
  step.call("seeded_rows", "embedding",
            plumb_seeded_rows_params{.keys = step.inputs.token_keys,
                                     .out = space_.embeds,
                                     .rows = step.tokens,
                                     .columns = geometry_.hidden,
                                     .seed = kEmbeddingSeed,
                                     .stream = nullptr});
  const MixWeights& weights = weights_.layers[0].attention;
  turn_ = 0;
  step.call("mhc_pre_broadcast", layer_name(0, "attention mix"),
            plumb_mhc_pre_broadcast_params{.residual = space_.embeds,
                                           .fn = weights.fn,
                                           .scale = weights.scale,
                                           .base = weights.base,
                                           .norm_weight = weights.norm,
                                           .residual_out = space_.streams[0],
                                           .post = space_.post[0],
                                           .comb = space_.comb[0],
                                           .layer_input = space_.layer_input,
                                           .partial_mixes = space_.partial_mixes,
                                           .partial_square_sums = space_.partial_square_sums,
                                           .tokens = step.tokens,
                                           .hidden = geometry_.hidden,
                                           .residual_token_stride = geometry_.hidden,
                                           .splits = kSplits,
                                           .sinkhorn_iterations = kSinkhornIterations,
                                           .rms_eps = kEps,
                                           .pre_eps = kEps,
                                           .sinkhorn_eps = kEps,
                                           .norm_eps = kEps,
                                           .post_mult = kPostMult,
                                           .stream = nullptr});
}

void V4Model::finish_attention(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  step.call("inverse_rope", layer_name(i, "inverse rope"),
            plumb_inverse_rope_params{.x = space_.attention,
                                      .positions = step.inputs.positions,
                                      .cos_sin = weights_.cos_sin,
                                      .tokens = step.tokens,
                                      .heads = g.heads,
                                      .x_token_stride = g.heads * kHeadDim,
                                      .stream = nullptr});
  linear(step, layer_name(i, "output projection"), space_.attention, g.heads * kHeadDim, space_.x,
         g.hidden);
  mix(step, layer_name(i, "feed-forward mix"), weights_.layers[i].ffn);
}

void V4Model::feed_forward(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  linear(step, layer_name(i, "router projection"), space_.layer_input, g.hidden,
         space_.router_logits, g.experts, PLUMB_F32);
  step.call("sqrt_softplus_topk", layer_name(i, "router"),
            plumb_sqrt_softplus_topk_params{.logits = space_.router_logits,
                                            .bias = weights_.layers[i].router_bias,
                                            .is_padding = step.inputs.is_padding,
                                            .weights = space_.router_weights,
                                            .ids = space_.router_ids,
                                            .token_expert_indices = nullptr,
                                            .tokens = step.tokens,
                                            .logits_row_stride = g.experts,
                                            .experts = static_cast<std::int32_t>(g.experts),
                                            .topk = static_cast<std::int32_t>(g.experts_per_token),
                                            .logits_format = PLUMB_F32,
                                            .weight = PLUMB_WEIGHT_SCORE,
                                            .renormalize = 1,
                                            .routed_scaling_factor = kRoutedScaling,
                                            .stream = nullptr});
  linear(step, layer_name(i, "experts"), space_.layer_input, g.hidden, space_.x, g.hidden);
  if (i + 1 < g.layers.size()) {
    mix(step, layer_name(i + 1, "attention mix"), weights_.layers[i + 1].attention);
  }
}

// The sublayer's result into the streams, and the next sublayer's input out of them.
void V4Model::mix(const StepContext& step, const std::string& name, const MixWeights& weights) {
  const int from = turn_, to = 1 - turn_;
  step.call("mhc_fused_post_pre", name,
            plumb_mhc_fused_post_pre_params{.x = space_.x,
                                            .residual = space_.streams[from],
                                            .post_before = space_.post[from],
                                            .comb_before = space_.comb[from],
                                            .fn = weights.fn,
                                            .scale = weights.scale,
                                            .base = weights.base,
                                            .norm_weight = weights.norm,
                                            .residual_out = space_.streams[to],
                                            .post = space_.post[to],
                                            .comb = space_.comb[to],
                                            .layer_input = space_.layer_input,
                                            .partial_mixes = space_.partial_mixes,
                                            .partial_square_sums = space_.partial_square_sums,
                                            .tokens = step.tokens,
                                            .hidden = geometry_.hidden,
                                            .residual_token_stride = kStreams * geometry_.hidden,
                                            .residual_slot_stride = geometry_.hidden,
                                            .splits = kSplits,
                                            .sinkhorn_iterations = kSinkhornIterations,
                                            .rms_eps = kEps,
                                            .pre_eps = kEps,
                                            .sinkhorn_eps = kEps,
                                            .norm_eps = kEps,
                                            .post_mult = kPostMult,
                                            .stream = nullptr});
  turn_ = to;
}

void V4Model::read_out(const StepContext& step) {
  const Geometry& g = geometry_;
  const int from = turn_, to = 1 - turn_;
  step.call("mhc_post", "last mix",
            plumb_mhc_post_params{.x = space_.x,
                                  .residual = space_.streams[from],
                                  .post = space_.post[from],
                                  .comb = space_.comb[from],
                                  .out = space_.streams[to],
                                  .tokens = step.tokens,
                                  .hidden = g.hidden,
                                  .residual_token_stride = kStreams * g.hidden,
                                  .residual_slot_stride = g.hidden,
                                  .stream = nullptr});
  step.call("hc_head", "head mix",
            plumb_hc_head_params{.hidden_states = space_.streams[to],
                                 .fn = weights_.head_fn,
                                 .scale = weights_.head_scale,
                                 .base = weights_.head_base,
                                 .out = space_.head,
                                 .tokens = step.tokens,
                                 .hidden = g.hidden,
                                 .hidden_token_stride = kStreams * g.hidden,
                                 .hidden_slot_stride = g.hidden,
                                 .rms_eps = kEps,
                                 .hc_eps = kEps,
                                 .rounding = PLUMB_ROUND_ONCE,
                                 .stream = nullptr});
  step.call("rms_norm", "final norm",
            plumb_rms_norm_params{.x = space_.head,
                                  .weight = weights_.final_norm,
                                  .out = space_.out,
                                  .tokens = step.tokens,
                                  .hidden = g.hidden,
                                  .x_row_stride = g.hidden,
                                  .eps = kEps,
                                  .rounding = PLUMB_ROUND_ONCE,
                                  .stream = nullptr});
}

void V4Model::linear(const StepContext& step, const std::string& name, const void* in,
                     std::int64_t in_columns, void* out, std::int64_t out_columns,
                     plumb_format out_format) const {
  step.call("linear_map", name,
            plumb_linear_map_params{.in = in,
                                    .out = out,
                                    .rows = step.tokens,
                                    .in_columns = in_columns,
                                    .out_columns = out_columns,
                                    .in_format = PLUMB_BF16,
                                    .out_format = out_format,
                                    .seed = seed_of(name),
                                    .stream = nullptr});
}

}  // namespace plumb::device::decode
