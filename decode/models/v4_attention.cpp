// SPDX-License-Identifier: Apache-2.0
//
// The attention half of a V4 layer: projections, cache writers, and the attention of decode tokens.
#include <plumb/ops/indexer.h>
#include <plumb/ops/norm.h>

#include <cmath>

#include "decode/models/linear.h"
#include "decode/models/mla_call.h"
#include "decode/models/v4_layers.h"
#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::device::decode {

namespace {

constexpr std::uint64_t kKvSeed = 12, kInputSeed = 13;

}  // namespace

void V4Layers::project(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  const LayerWeights& weights = weights_.layers[i];
  linear(step, place(i, "q projection"), Projection::q, space_.layer_input, g.hidden,
         space_.q_latent, g.q_lora);
  linear(step, place(i, "kv projection"), Projection::kv, space_.layer_input, g.hidden,
         space_.kv_latent, kHeadDim);
  step.call("q_kv_rms_norm", place(i, "q and kv norm"),
            plumb_q_kv_rms_norm_params{.q = space_.q_latent,
                                       .kv = space_.kv_latent,
                                       .q_weight = weights.q_norm,
                                       .kv_weight = weights.kv_norm,
                                       .out_q = space_.q_normed,
                                       .out_kv = space_.kv_normed,
                                       .tokens = step.tokens,
                                       .q_hidden = g.q_lora,
                                       .kv_hidden = kHeadDim,
                                       .q_row_stride = g.q_lora,
                                       .kv_row_stride = kHeadDim,
                                       .out_q_row_stride = g.q_lora,
                                       .out_kv_row_stride = kHeadDim,
                                       .eps = kEps,
                                       .stream = nullptr});
  linear(step, place(i, "head projection"), Projection::head, space_.q_normed, g.q_lora,
         space_.q_heads, g.heads * kHeadDim);
  step.call("q_head_rms_norm_rope", place(i, "q head norm"),
            plumb_q_head_rms_norm_rope_params{.q = space_.q_heads,
                                              .positions = step.inputs.positions,
                                              .cos_sin = weights_.cos_sin,
                                              .out = space_.q,
                                              .tokens = step.tokens,
                                              .heads = g.heads,
                                              .q_token_stride = g.heads * kHeadDim,
                                              .out_token_stride = g.heads * kHeadDim,
                                              .out_head_stride = kHeadDim,
                                              .eps = kEps,
                                              .stream = nullptr});
  const CacheWrite writer{step.call, step.inputs, step.tokens,
                          compressor_policy_.compresses(g.layers[i], step.plan)};
  write_window(writer, i);
  write_states(writer, i);
  if (g.layers[i] == Attention::c4a) prepare_indexer(step, i);
}

void V4Layers::fill_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                           Filled filled) {
  const CacheWrite step{call, inputs, tokens, filled == Filled::everything};
  if (filled == Filled::everything) compressed_slots_.build(call, inputs, tokens, 1);
  for (std::size_t i = 0; i < geometry_.layers.size(); ++i) {
    const auto make = [&](const char* name, std::uint16_t* out, std::int64_t columns,
                          std::uint64_t seed) {
      call("seeded_rows", place(i, name),
           plumb_seeded_rows_params{.keys = inputs.token_keys,
                                    .out = out,
                                    .rows = tokens,
                                    .columns = columns,
                                    .seed = seed + 100 * i,
                                    .stream = nullptr});
    };
    make("earlier kv", space_.kv_normed, kHeadDim, kKvSeed);
    write_window(step, i);
    if (geometry_.layers[i] == Attention::window) continue;
    make("earlier inputs", space_.layer_input, geometry_.hidden, kInputSeed);
    write_states(step, i);
  }
}

void V4Layers::write_window(const CacheWrite& step, std::size_t i) {
  step.call("quantize_and_insert_k_cache", place(i, "window cache insert"),
            plumb_quantize_and_insert_k_cache_params{.kv = space_.kv_normed,
                                                     .slot_mapping = step.inputs.slot_mapping[0],
                                                     .cache = written_cache(i, Cache::window),
                                                     .tokens = step.tokens,
                                                     .kv_row_stride = kHeadDim,
                                                     .stream = nullptr,
                                                     .amax_floor = kAmaxFloor});
}

void V4Layers::prepare_indexer(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  linear(step, place(i, "index q projection"), Projection::index_q, space_.q_normed, g.q_lora,
         space_.index_q, g.index_heads * g.index_dim);
  linear(step, place(i, "index weights projection"), Projection::index_weights, space_.layer_input,
         g.hidden, space_.index_weights, g.index_heads);
  step.call("indexer_q_rope_quant", place(i, "index q"),
            plumb_indexer_q_rope_quant_params{
                .q = space_.index_q,
                .positions = step.inputs.positions,
                .cos_sin = weights_.cos_sin,
                .weights = space_.index_weights,
                .q_out = space_.index_q_codes,
                .weights_out = space_.index_scales,
                .tokens = step.tokens,
                .q_token_stride = g.index_heads * g.index_dim,
                .heads = g.index_heads,
                .dim = g.index_dim,
                .rope_dim = kRopeDim,
                .rope_offset = g.index_dim - kRopeDim,
                .q_out_token_stride = g.index_heads * g.index_dim,
                .q_out_head_stride = g.index_dim,
                .weights_out_row_stride = g.index_heads,
                .rope_pairs = PLUMB_ROPE_INTERLEAVED,
                .softmax_scale = 1 / std::sqrt(static_cast<float>(g.index_dim)),
                .head_scale = 1 / std::sqrt(static_cast<float>(g.index_heads)),
                .amax_floor = kAmaxFloor,
                .dialect = dialect_,
                .stream = nullptr});
}

// Prefill chunks and decodes write their own rows. Rows after the live tokens keep old values.
void V4Layers::attend(const StepContext& step, std::size_t i) {
  for (std::size_t chunk = 0; chunk < step.plan.prefill.chunks.size(); ++chunk) {
    attend_prefill(step, i, chunk);
  }
  if (step.decode_rows() > 0) attend_decode(step, i);
}

void V4Layers::attend_decode(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  const Attention kind = g.layers[i];
  const bool lists = kind == Attention::c4a, planned = layer_policy_.plans_before_lists();
  if (lists && !planned) map_top_k(step, i);
  plumb_sparse_mla_decode_params params{};
  params.q = space_.q;
  params.main_cache = cache(i, Cache::window);
  params.main = metadata_->window();
  if (kind != Attention::window) {
    params.extra_cache = cache(i, compressed_cache(kind));
    params.extra = lists ? c4a_candidates() : metadata_->c128a();
  }
  params.attn_sink = weights_.layers[i].attn_sink;
  params.out = space_.attention;
  params.lse = space_.lse;
  params.requests = step.decode_rows();
  params.queries = 1;
  params.heads = g.heads;
  params.sm_scale = kV4SmScale;
  set_strides(params, kHeadDim);
  MlaState& state = step.attention.of(layer_policy_.plan_of(kind));
  if (lists && planned) {
    plan_attention(step.call, place(i, "attention"), params, state);
    map_top_k(step, i);
  }
  attend_split(step, i, params, state);
}

void V4Layers::attend_split(const StepContext& step, std::size_t i,
                            plumb_sparse_mla_decode_params params, MlaState& state) {
  const Geometry& g = geometry_;
  const std::int64_t partial_rows = (g.max_tokens() + g.plan_parts) * g.heads;
  void* const partial_out = scratch_.take(
      space_.partial_out, static_cast<std::size_t>(partial_rows * kHeadDim) * sizeof(float),
      temporaries_);
  params.partial_out = static_cast<float*>(partial_out);
  params.partial_lse = space_.partial_lse;
  call_attention(step.call, place(i, "attention"), params, state);
  scratch_.give_back(partial_out, temporaries_);
}

plumb_mla_cache V4Layers::cache(std::size_t layer, Cache which) const {
  const plumb_paged_cache written = written_cache(layer, which);
  return {.data = written.data,
          .block_stride_bytes = written.block_stride_bytes,
          .num_blocks = written.num_blocks,
          .page = written.page,
          .dialect = written.dialect,
          .layout = PLUMB_MLA_V4,
          .scale_reading = PLUMB_SCALE_FP32};
}

plumb_paged_cache V4Layers::written_cache(std::size_t layer, Cache which) const {
  const bool window = which == Cache::window;
  const std::int64_t page = geometry_.pages[static_cast<int>(which)];
  return {.data = window ? caches_[layer].window : caches_[layer].compressed,
          .block_stride_bytes = block_bytes(page),
          .num_blocks = requests_.blocks(which),
          .page = page,
          .dialect = window ? dialect_ : PLUMB_E4M3FN};
}

plumb_paged_cache V4Layers::indexer_cache(std::size_t layer) const {
  const std::int64_t page = geometry_.pages[static_cast<int>(Cache::c4a)];
  return {.data = caches_[layer].indexer,
          .block_stride_bytes = page * (geometry_.index_dim + kIndexScaleBytes),
          .num_blocks = requests_.blocks(Cache::c4a),
          .page = page,
          .dialect = PLUMB_E4M3FN};
}

std::vector<CacheView> V4Layers::caches() const {
  std::vector<CacheView> all;
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    const auto add = [&](const char* name, Cache which, const plumb_paged_cache& cache,
                         std::int64_t entry_bytes) {
      all.push_back({layer_name(i, name), which, cache.data, cache.page, cache.block_stride_bytes,
                     entry_bytes});
    };
    const auto add_partial = [&](const char* name, const PartialStateLayout& states,
                                 std::uint8_t* data) {
      const std::int64_t page = geometry_.pages[static_cast<int>(states.cache)];
      all.push_back({layer_name(i, name), states.cache, data, page, page * states.row_bytes(),
                     states.row_bytes()});
    };
    const Attention kind = geometry_.layers[i];
    add("window cache", Cache::window, written_cache(i, Cache::window), kEntryData);
    if (kind == Attention::window) continue;
    const Cache which = compressed_cache(kind);
    add("compressed cache", which, written_cache(i, which), kEntryData);
    add_partial("partial states", partial_states(kind), caches_[i].partial);
    if (kind != Attention::c4a) continue;
    add("indexer cache", which, indexer_cache(i), geometry_.index_dim);
    add_partial("index partial states", index_partial_states(geometry_), caches_[i].index_partial);
  }
  return all;
}

}  // namespace plumb::device::decode
