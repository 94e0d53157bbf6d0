// SPDX-License-Identifier: Apache-2.0
//
// Attention of prefill tokens, one chunk of requests at a time. The entries that a chunk attends
// are gathered from the paged caches into a workspace of bf16 rows   [2.8, 2.9].
#include <plumb/ops/metadata.h>

#include "decode/models/v4_layers.h"

namespace plumb::device::decode {

void V4Layers::attend_prefill(const StepContext& step, std::size_t i, std::size_t number) {
  const Geometry& g = geometry_;
  const PrefillChunk& chunk = step.plan.prefill.chunks[number];
  const Attention kind = g.layers[i];
  gather_states(step, place(i, "gathered").in_chunk(number), i, chunk);
  combine(step, place(i, "prefill candidates").in_chunk(number), kind, chunk);
  const std::int64_t row = g.heads * kHeadDim;
  const LayerWeights& weights = weights_.layers[layer_policy_.sinks_of_prompts(i)];
  step.call(
      "sparse_mla_prefill", place(i, "prefill attention").in_chunk(number),
      plumb_sparse_mla_prefill_params{.q = space_.q + chunk.first_token * row,
                                      .kv = prefill_.kv,
                                      .candidates = {.indices = prefill_.flat,
                                                     .lengths = nullptr,
                                                     .indptr = prefill_.indptr,
                                                     .request_stride = 0,
                                                     .query_stride = 0,
                                                     .width = g.attended_states(kind) + g.window},
                                      .attn_sink = weights.attn_sink,
                                      .out = space_.attention + chunk.first_token * row,
                                      .max_logits = nullptr,
                                      .lse = nullptr,
                                      .rows = chunk.tokens,
                                      .heads = g.heads,
                                      .kv_rows = chunk.requests * g.workspace_rows(kind),
                                      .key_dims = kHeadDim,
                                      .q_row_stride = row,
                                      .q_head_stride = kHeadDim,
                                      .kv_row_stride = kHeadDim,
                                      .out_row_stride = row,
                                      .out_head_stride = kHeadDim,
                                      .sm_scale = kV4SmScale,
                                      .stream = nullptr});
}

// Gathers compressed states to the first rows of each request, and window tokens after them.
void V4Layers::gather_states(const StepContext& step, const CallPlace& place, std::size_t i,
                             const PrefillChunk& chunk) {
  const Geometry& g = geometry_;
  const Attention kind = g.layers[i];
  const std::int64_t rows = g.workspace_rows(kind);
  const auto gather = [&](const char* what, Cache from, const std::int32_t* lens,
                          const std::int32_t* gather_lens, std::int64_t offset) {
    const std::int64_t blocks = g.blocks_per_request(from);
    const std::int32_t* table = step.inputs.block_tables[static_cast<int>(from)];
    step.call("dequantize_and_gather_k_cache", place.with(what),
              plumb_dequantize_and_gather_k_cache_params{
                  .cache = cache(i, from),
                  .block_table = table + chunk.first_request * blocks,
                  .seq_lens = lens,
                  .gather_lens = gather_lens,
                  .out = prefill_.kv,
                  .requests = chunk.requests,
                  .rows = rows,
                  .pages = blocks,
                  .offset = offset,
                  .out_request_stride = rows * kHeadDim,
                  .out_row_stride = kHeadDim,
                  .block_table_row_stride = blocks,
                  .stream = nullptr});
  };
  if (kind != Attention::window && layer_policy_.gathers_states(kind)) {
    const Cache from = compressed_cache(kind);
    const std::int32_t* counts = step.inputs.prefill.state_counts[static_cast<int>(from)];
    gather(" states", from, counts + (chunk.first_request - step.plan.num_decodes), nullptr, 0);
  }
  gather(" window", Cache::window, step.inputs.seq_lens + chunk.first_request,
         metadata_->gather_lens() + chunk.first_request, g.state_rows(kind));
}

void V4Layers::combine(const StepContext& step, const CallPlace& place, Attention kind,
                       const PrefillChunk& chunk) {
  const Geometry& g = geometry_;
  const std::int64_t first = chunk.first_token - step.plan.num_decode_tokens;
  plumb_combine_topk_swa_indices_ragged_params params{};
  params.top_k = params.topk_width = params.topk_indices_row_stride = g.attended_states(kind);
  params.ratio = 1;
  if (kind == Attention::c4a) {
    params.topk_indices = space_.top_k + chunk.first_token * params.top_k;
    params.ratio = kC4a;
  } else if (kind == Attention::c128a) {
    const std::int64_t list =
        layer_policy_.first_c128a_list(first, chunk.first_request - step.plan.num_decodes);
    params.topk_indices = metadata_->c128a_prefill() + list * params.top_k;
    params.ratio = kC128a;
  }
  params.query_start_loc = step.inputs.query_start_loc + chunk.first_request;
  params.seq_lens = step.inputs.seq_lens + chunk.first_request;
  params.gather_lens = metadata_->gather_lens() + chunk.first_request;
  params.flat = prefill_.flat;
  params.indptr = prefill_.indptr;
  params.lens = prefill_.lens;
  params.tokens = chunk.tokens;
  params.requests = chunk.requests;
  params.window = g.window;
  params.rows_per_request = g.workspace_rows(kind);
  params.compressed_rows = g.state_rows(kind);
  params.minus_one = PLUMB_MINUS_ONE_KEPT;
  params.missing = PLUMB_NO_VALUE_MINUS_ONE;
  step.call("combine_topk_swa_indices_ragged", place, params);
}

}  // namespace plumb::device::decode
