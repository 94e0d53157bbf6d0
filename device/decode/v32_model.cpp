// SPDX-License-Identifier: Apache-2.0
#include "device/decode/v32_model.h"

#include <utility>

#include "device/decode/linear.h"
#include "device/decode/stand_ins.h"

namespace plumb::device::decode {

namespace {

constexpr float kEps = 1e-6F, kRoutedScaling = 2.5F;
constexpr std::uint64_t kEmbeddingSeed = 21, kLatentSeed = 22, kRopeSeed = 23, kIndexKeySeed = 24;

}  // namespace

V32Model::V32Model(const Geometry& geometry, const Requests& requests, plumb_format dialect,
                   Device& device, Stream stream, Memory& memory, V32Policies policies,
                   std::uint64_t seed)
    : geometry_(geometry),
      requests_(requests),
      dialect_(dialect),
      metadata_(geometry, device, stream, memory, std::move(policies)),
      weights_(geometry, device, stream, memory, seed),
      space_(geometry, memory) {
  for (std::size_t i = 0; i < geometry.layers.size(); ++i) {
    const auto allocate = [&](std::int64_t token_bytes, const char* name) {
      const plumb_paged_cache cache = paged(nullptr, token_bytes);
      return memory.allocate<std::uint8_t>(cache.num_blocks * cache.block_stride_bytes,
                                           layer_name(i, name));
    };
    caches_.push_back({allocate(kV32TokenBytes, "token cache"),
                       allocate(geometry.index_dim + kIndexScaleBytes, "indexer cache")});
  }
}

void V32Model::build_metadata(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  metadata_.build(call, inputs, plan);
}

std::vector<Segment> V32Model::segments() {
  std::vector<Segment> all;
  all.push_back({"embedding", false, [this](const StepContext& step) { embed(step); }});
  for (std::size_t i = 0; i < geometry_.layers.size(); ++i) {
    const auto add = [&](const char* name, bool breaks,
                         void (V32Model::*run)(const StepContext&, std::size_t)) {
      all.push_back({layer_name(i, name), breaks,
                     [this, i, run](const StepContext& step) { (this->*run)(step, i); }});
    };
    add("projections", false, &V32Model::project);
    add("indexer", true, &V32Model::run_indexer);
    add("attention", true, &V32Model::attend);
    add("feed-forward", false, &V32Model::feed_forward);
  }
  return all;
}

// The first norm has nothing to add: the embedding is the residual.
void V32Model::embed(const StepContext& step) {
  step.call("seeded_rows", "embedding",
            plumb_seeded_rows_params{.keys = step.inputs.token_keys,
                                     .out = space_.residual,
                                     .rows = step.tokens,
                                     .columns = geometry_.hidden,
                                     .seed = kEmbeddingSeed,
                                     .stream = nullptr});
  step.call("rms_norm", layer_name(0, "attention norm"),
            plumb_rms_norm_params{.x = space_.residual,
                                  .weight = weights_.layers[0].attention_norm,
                                  .out = space_.hidden,
                                  .tokens = step.tokens,
                                  .hidden = geometry_.hidden,
                                  .x_row_stride = geometry_.hidden,
                                  .eps = kEps,
                                  .rounding = PLUMB_ROUND_ONCE,
                                  .stream = nullptr});
}

void V32Model::fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens) {
  for (std::size_t i = 0; i < geometry_.layers.size(); ++i) {
    const auto make = [&](const char* name, std::uint16_t* out, std::int64_t columns,
                          std::uint64_t seed) {
      call("seeded_rows", layer_name(i, name),
           plumb_seeded_rows_params{.keys = inputs.token_keys,
                                    .out = out,
                                    .rows = tokens,
                                    .columns = columns,
                                    .seed = seed + 100 * i,
                                    .stream = nullptr});
    };
    make("earlier latents", space_.kv_normed, kHeadDim, kLatentSeed);
    make("earlier rope keys", space_.k_rope, kRopeDim, kRopeSeed);
    make("earlier index keys", space_.index_keys, geometry_.index_dim, kIndexKeySeed);
    write_caches(call, inputs, tokens, i);
  }
}

void V32Model::feed_forward(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  linear(step, layer_name(i, "output projection"), space_.attention, g.heads * kHeadDim, space_.x,
         g.hidden);
  add_and_norm(step, layer_name(i, "feed-forward norm"), space_.x, weights_.layers[i].ffn_norm);
  route(step, i);
  linear(step, layer_name(i, "experts"), space_.x, g.hidden, space_.hidden, g.hidden);
  if (i + 1 < g.layers.size()) {
    add_and_norm(step, layer_name(i + 1, "attention norm"), space_.hidden,
                 weights_.layers[i + 1].attention_norm);
  } else {
    add_and_norm(step, "final norm", space_.hidden, weights_.final_norm);
  }
}

void V32Model::route(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  linear(step, layer_name(i, "router projection"), space_.x, g.hidden, space_.router_logits,
         g.experts, PLUMB_F32);
  step.call("grouped_topk", layer_name(i, "router"),
            plumb_grouped_topk_params{.logits = space_.router_logits,
                                      .bias = weights_.layers[i].router_bias,
                                      .weights = space_.router_weights,
                                      .ids = space_.router_ids,
                                      .tokens = step.tokens,
                                      .logits_row_stride = g.experts,
                                      .experts = static_cast<std::int32_t>(g.experts),
                                      .n_group = static_cast<std::int32_t>(g.expert_groups),
                                      .topk_group = static_cast<std::int32_t>(g.kept_groups),
                                      .topk = static_cast<std::int32_t>(g.experts_per_token),
                                      .logits_format = PLUMB_F32,
                                      .arithmetic = PLUMB_ROUTER_FP32,
                                      .renormalize = 1,
                                      .routed_scaling_factor = kRoutedScaling,
                                      .stream = nullptr});
}

// residual += x, x = norm of that: the next sublayer's input.
void V32Model::add_and_norm(const StepContext& step, const std::string& name, std::uint16_t* x,
                            const std::uint16_t* weight) {
  step.call("fused_add_rms_norm", name,
            plumb_fused_add_rms_norm_params{.x = x,
                                            .residual = space_.residual,
                                            .weight = weight,
                                            .tokens = step.tokens,
                                            .hidden = geometry_.hidden,
                                            .x_row_stride = geometry_.hidden,
                                            .eps = kEps,
                                            .rounding = PLUMB_ROUND_ONCE,
                                            .fp32_sum = 0,
                                            .stream = nullptr});
}

plumb_paged_cache V32Model::paged(std::uint8_t* data, std::int64_t token_bytes) const {
  const std::int64_t page = geometry_.pages[static_cast<int>(Cache::window)];
  return {.data = data,
          .block_stride_bytes = page * token_bytes,
          .num_blocks = requests_.blocks(Cache::window),
          .page = static_cast<std::int32_t>(page),
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
    const auto add = [&](const char* name, const plumb_paged_cache& cache) {
      all.push_back(
          {layer_name(i, name), Cache::window, cache.data, cache.page, cache.block_stride_bytes});
    };
    add("token cache", token_cache(i));
    add("indexer cache", indexer_cache(i));
  }
  return all;
}

}  // namespace plumb::device::decode
