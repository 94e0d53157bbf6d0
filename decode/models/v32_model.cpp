// SPDX-License-Identifier: Apache-2.0
#include "decode/models/v32_model.h"

#include <plumb/ops/norm.h>
#include <plumb/ops/router.h>

#include "decode/models/linear.h"
#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::device::decode {

namespace {

constexpr std::uint64_t kV32EmbeddingSeed = 21, kLatentSeed = 22, kRopeSeed = 23,
                        kV32IndexKeySeed = 24;

}  // namespace

// AITER's metadata supports graphs with one query token per request   [3.3]. With more, the
// automatic mode keeps attention outside of graphs.
ModelTraits v32_traits(std::int64_t query_tokens) {
  return {
      .name = "V3.2",
      .full_graphs = FullGraphSupport::uniform_single_token,
      .automatic_mode = query_tokens == 1 ? GraphMode::full_and_piecewise : GraphMode::piecewise};
}

V32Model::V32Model(const Geometry& geometry, const ModelSite& site)
    : geometry_(geometry),
      requests_(site.requests),
      dialect_(site.dialect),
      router_logits_(site.policies.layers->router_logits()),
      metadata_(geometry, site.device, site.stream, site.memory, site.policies.v32),
      weights_(geometry, site.device, site.stream, site.memory, site.seed),
      space_(geometry, site.memory),
      indexer_(geometry, Cache::window, site) {
  for (std::size_t i = 0; i < geometry.layers.size(); ++i) {
    const auto allocate = [&](std::int64_t token_bytes, const char* name) {
      const plumb_paged_cache cache = paged(nullptr, token_bytes);
      return site.memory.allocate<std::uint8_t>(cache.num_blocks * cache.block_stride_bytes,
                                                layer_place(i, name).name);
    };
    caches_.push_back({allocate(kV32TokenBytes, "token cache"),
                       allocate(geometry.index_dim + kIndexScaleBytes, "indexer cache")});
  }
  const std::int64_t elements = geometry.max_tokens() * geometry.heads * kHeadDim;
  site.device.fill(space_.attention, kUnattended,
                   static_cast<std::size_t>(elements) * sizeof(std::uint16_t), site.stream);
}

ModelTraits V32Model::traits() const { return v32_traits(geometry_.query_tokens()); }

void V32Model::build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  indexer_.build_schedule(call, inputs, plan);
  metadata_.build(call, inputs, plan);
}

std::vector<Segment> V32Model::segments() {
  std::vector<Segment> all;
  all.push_back({.name = "embedding", .run = [this](const StepContext& step) { embed(step); }});
  for (std::size_t i = 0; i < geometry_.layers.size(); ++i) add_layer(all, i);
  return all;
}

void V32Model::add_layer(std::vector<Segment>& all, std::size_t i) {
  const auto bytes = [](std::int64_t count, std::size_t of_one) {
    return count * static_cast<std::int64_t>(of_one);
  };
  all.push_back({.name = layer_place(i, "projections").name,
                 .run = [this, i](const StepContext& step) { project(step, i); }});
  all.push_back({.name = layer_place(i, "indexer").name,
                 .breaks = true,
                 .run = [this, i](const StepContext& step) { run_indexer(step, i); },
                 .result_bytes = bytes(geometry_.top_k, sizeof(std::int32_t)),
                 .return_at = [this](void* at) { space_.top_k = static_cast<std::int32_t*>(at); }});
  all.push_back(
      {.name = layer_place(i, "attention").name,
       .breaks = true,
       .run = [this, i](const StepContext& step) { attend(step, i); },
       .result_bytes = bytes(geometry_.heads * kHeadDim, sizeof(std::uint16_t)),
       .return_at = [this](void* at) { space_.attention = static_cast<std::uint16_t*>(at); }});
  all.push_back({.name = layer_place(i, "feed-forward").name,
                 .run = [this, i](const StepContext& step) { feed_forward(step, i); }});
}

// The first norm has no addend: the embedding is the residual.
void V32Model::embed(const StepContext& step) {
  step.call("seeded_rows", "embedding",
            plumb_seeded_rows_params{.keys = step.inputs.token_keys,
                                     .out = space_.residual,
                                     .rows = step.tokens,
                                     .columns = geometry_.hidden,
                                     .seed = kV32EmbeddingSeed,
                                     .stream = nullptr});
  step.call("rms_norm", layer_place(0, "attention norm"),
            plumb_rms_norm_params{.x = space_.residual,
                                  .weight = weights_.layers[0].attention_norm,
                                  .out = space_.hidden,
                                  .tokens = step.tokens,
                                  .hidden = geometry_.hidden,
                                  .x_row_stride = geometry_.hidden,
                                  .out_row_stride = geometry_.hidden,
                                  .eps = kEps,
                                  .rounding = PLUMB_ROUND_ONCE,
                                  .stream = nullptr});
}

void V32Model::fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                           Filled /*filled*/) {
  for (std::size_t i = 0; i < geometry_.layers.size(); ++i) {
    const auto make = [&](const char* name, std::uint16_t* out, std::int64_t columns,
                          std::uint64_t seed) {
      call("seeded_rows", layer_place(i, name),
           plumb_seeded_rows_params{.keys = inputs.token_keys,
                                    .out = out,
                                    .rows = tokens,
                                    .columns = columns,
                                    .seed = seed + 100 * i,
                                    .stream = nullptr});
    };
    make("earlier latents", space_.kv_normed, kHeadDim, kLatentSeed);
    make("earlier rope keys", space_.k_rope, kRopeDim, kRopeSeed);
    make("earlier index keys", space_.index_keys, geometry_.index_dim, kV32IndexKeySeed);
    write_caches(call, inputs, tokens, i);
  }
}

void V32Model::feed_forward(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  linear(step, layer_place(i, "output projection"), Projection::output, space_.attention,
         g.heads * kHeadDim, space_.x, g.hidden);
  add_and_norm(step, layer_place(i, "feed-forward norm"), space_.x, weights_.layers[i].ffn_norm);
  route(step, i);
  linear(step, layer_place(i, "experts"), Projection::experts, space_.x, g.hidden, space_.hidden,
         g.hidden);
  if (i + 1 < g.layers.size()) {
    add_and_norm(step, layer_place(i + 1, "attention norm"), space_.hidden,
                 weights_.layers[i + 1].attention_norm);
  } else {
    add_and_norm(step, "final norm", space_.hidden, weights_.final_norm);
  }
}

void V32Model::route(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  linear(step, layer_place(i, "router projection"), Projection::router, space_.x, g.hidden,
         space_.router_logits, g.experts, router_logits_);
  step.call("grouped_topk", layer_place(i, "router"),
            plumb_grouped_topk_params{.logits = space_.router_logits,
                                      .bias = weights_.layers[i].router_bias,
                                      .weights = space_.router_weights,
                                      .ids = space_.router_ids,
                                      .tokens = step.tokens,
                                      .logits_row_stride = g.experts,
                                      .experts = g.experts,
                                      .n_group = g.expert_groups,
                                      .topk_group = g.kept_groups,
                                      .topk = g.experts_per_token,
                                      .weights_row_stride = g.experts_per_token,
                                      .ids_row_stride = g.experts_per_token,
                                      .logits_format = router_logits_,
                                      .arithmetic = PLUMB_ROUTER_FP32,
                                      .renormalize = 1,
                                      .routed_scaling_factor = g.routed_scaling,
                                      .stream = nullptr});
}

// residual += x, then x = norm(residual), the input of the next sublayer.
void V32Model::add_and_norm(const StepContext& step, const CallPlace& place, std::uint16_t* x,
                            const std::uint16_t* weight) {
  step.call("fused_add_rms_norm", place,
            plumb_fused_add_rms_norm_params{.x = x,
                                            .residual = space_.residual,
                                            .weight = weight,
                                            .tokens = step.tokens,
                                            .hidden = geometry_.hidden,
                                            .x_row_stride = geometry_.hidden,
                                            .residual_row_stride = geometry_.hidden,
                                            .eps = kEps,
                                            .rounding = PLUMB_ROUND_ONCE,
                                            .sum = PLUMB_SUM_BF16,
                                            .stream = nullptr});
}

plumb_paged_cache V32Model::paged(std::uint8_t* data, std::int64_t token_bytes) const {
  const std::int64_t page = geometry_.pages[static_cast<int>(Cache::window)];
  return {.data = data,
          .block_stride_bytes = page * token_bytes,
          .num_blocks = requests_.blocks(Cache::window),
          .page = page,
          .dialect = dialect_};
}

plumb_paged_cache V32Model::token_cache(std::size_t layer) const {
  return paged(caches_[layer].tokens, kV32TokenBytes);
}

plumb_paged_cache V32Model::indexer_cache(std::size_t layer) const {
  return paged(caches_[layer].indexer, geometry_.index_dim + kIndexScaleBytes);
}

std::vector<CacheView> V32Model::caches() const {
  std::vector<CacheView> all;
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    const auto add = [&](const char* name, const plumb_paged_cache& cache,
                         std::int64_t entry_bytes) {
      all.push_back({layer_place(i, name).name, Cache::window, cache.data, cache.page,
                     cache.block_stride_bytes, entry_bytes});
    };
    add("token cache", token_cache(i), kV32TokenBytes);
    add("indexer cache", indexer_cache(i), geometry_.index_dim);
  }
  return all;
}

}  // namespace plumb::device::decode
