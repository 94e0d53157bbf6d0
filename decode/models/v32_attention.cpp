// SPDX-License-Identifier: Apache-2.0
//
// The attention half of a V3.2 layer: projections, cache writers, indexer, attention.
#include <plumb/ops/indexer.h>
#include <plumb/ops/metadata.h>
#include <plumb/ops/norm.h>

#include <cmath>

#include "decode/models/linear.h"
#include "decode/models/mla_call.h"
#include "decode/models/v32_model.h"

namespace plumb::device::decode {

namespace {

// 192^-0.5 * (0.1 ln 40 + 1)^2: head size before absorption is 128 + 64, and YaRN's mscale enters
// twice.
constexpr float kV32SmScale = 0.135233779F;
constexpr int kTokenCache = static_cast<int>(Cache::window);

}  // namespace

void V32Model::project(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  const V32LayerWeights& weights = weights_.layers[i];
  linear(step, layer_place(i, "q projection"), Projection::q, space_.hidden, g.hidden,
         space_.q_latent, g.q_lora);
  linear(step, layer_place(i, "kv projection"), Projection::kv, space_.hidden, g.hidden,
         space_.kv_latent, kHeadDim);
  linear(step, layer_place(i, "rope key projection"), Projection::rope_key, space_.hidden, g.hidden,
         space_.k_rope, kRopeDim);
  step.call("q_kv_rms_norm", layer_place(i, "q and kv norm"),
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
  linear(step, layer_place(i, "head projection"), Projection::head, space_.q_normed, g.q_lora,
         space_.q, g.heads * kV32KeyDim);
  linear(step, layer_place(i, "index key projection"), Projection::index_key, space_.hidden,
         g.hidden, space_.index_keys, g.index_dim);
  write_caches(step.call, step.inputs, step.tokens, i);
  prepare_indexer(step, i);
}

void V32Model::write_caches(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                            std::size_t i) {
  const std::int64_t dim = geometry_.index_dim;
  call("concat_and_cache_ds_mla", layer_place(i, "token cache insert"),
       plumb_concat_and_cache_ds_mla_params{.kv_c = space_.kv_normed,
                                            .k_pe = space_.k_rope,
                                            .slot_mapping = inputs.slot_mapping[kTokenCache],
                                            .cache = token_cache(i),
                                            .tokens = tokens,
                                            .kv_c_row_stride = kHeadDim,
                                            .k_pe_row_stride = kRopeDim,
                                            .stream = nullptr,
                                            .scale_floor = 0x1p-126F});
  call("indexer_k_quant_and_cache", layer_place(i, "index cache insert"),
       plumb_indexer_k_quant_and_cache_params{.k = space_.index_keys,
                                              .slot_mapping = inputs.slot_mapping[kTokenCache],
                                              .cache = indexer_cache(i),
                                              .tokens = tokens,
                                              .k_row_stride = dim,
                                              .head_dim = dim,
                                              .quant_block_size = dim,
                                              .scale_form = PLUMB_SCALE_POWER_OF_TWO,
                                              .shuffled = 0,
                                              .stream = nullptr,
                                              .amax_floor = kAmaxFloor});
}

// V3.2 applies RoPE to the first dimensions of an index query, with half-split pairs.
void V32Model::prepare_indexer(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  linear(step, layer_place(i, "index q projection"), Projection::index_q, space_.q_normed, g.q_lora,
         space_.index_q, g.index_heads * g.index_dim);
  linear(step, layer_place(i, "index weights projection"), Projection::index_weights, space_.hidden,
         g.hidden, space_.index_weights, g.index_heads);
  step.call("indexer_q_rope_quant", layer_place(i, "index q"),
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
                .rope_offset = 0,
                .q_out_token_stride = g.index_heads * g.index_dim,
                .q_out_head_stride = g.index_dim,
                .weights_out_row_stride = g.index_heads,
                .rope_pairs = PLUMB_ROPE_HALVES,
                .softmax_scale = 1 / std::sqrt(static_cast<float>(g.index_dim)),
                .head_scale = 1 / std::sqrt(static_cast<float>(g.index_heads)),
                .amax_floor = kAmaxFloor,
                .dialect = dialect_,
                .stream = nullptr});
}

void V32Model::run_indexer(const StepContext& step, std::size_t i) {
  indexer_.run(step, {.place = layer_place(i, ""),
                      .cache = indexer_cache(i),
                      .codes = space_.index_q_codes,
                      .scales = space_.index_scales,
                      .logits = space_.logits,
                      .top_k = space_.top_k});
}

void V32Model::map_top_k(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  step.call("v32_paged_kv_indices", layer_place(i, "top-k slots"),
            plumb_v32_paged_kv_indices_params{
                .topk_indices = space_.top_k,
                .req_id_per_token = metadata_.req_id_per_token(),
                .block_table = step.inputs.block_tables[kTokenCache],
                .paged_kv_indptr = metadata_.paged_kv_indptr(),
                .paged_kv_indices = metadata_.paged_kv_indices(),
                .tokens = step.tokens,
                .topk = g.top_k,
                .blocks_per_request = g.blocks_per_request(Cache::window),
                .topk_indices_row_stride = g.top_k,
                .block_table_row_stride = g.blocks_per_request(Cache::window),
                .page = g.pages[kTokenCache],
                .stream = nullptr});
}

void V32Model::attend(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  map_top_k(step, i);
  const plumb_paged_cache written = token_cache(i);
  plumb_sparse_mla_decode_params params{};
  params.q = space_.q;
  params.main_cache = {.data = written.data,
                       .block_stride_bytes = written.block_stride_bytes,
                       .num_blocks = written.num_blocks,
                       .page = written.page,
                       .dialect = written.dialect,
                       .layout = PLUMB_MLA_V32,
                       .scale_reading = PLUMB_SCALE_FP32};
  params.main.indices = metadata_.paged_kv_indices();
  params.main.indptr = metadata_.paged_kv_indptr();
  params.main.width = g.top_k;
  params.out = space_.attention;
  params.lse = space_.lse;
  params.partial_out = space_.partial_out;
  params.partial_lse = space_.partial_lse;
  params.requests = step.tokens;
  params.queries = 1;
  params.heads = g.heads;
  params.sm_scale = kV32SmScale;
  set_strides(params, kV32KeyDim);
  call_attention(step.call, layer_place(i, "attention"), params, metadata_.attention());
}

}  // namespace plumb::device::decode
