// SPDX-License-Identifier: Apache-2.0
#include "decode/models/indexer.h"

#include <plumb/ops/indexer.h>
#include <plumb/ops/metadata.h>
#include <plumb/ops/top_k.h>

#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::device::decode {

IndexerWorkspace::IndexerWorkspace(const Geometry& g, EngineMemory& memory) {
  const bool any = g.max_batched_tokens > 0;
  const std::int64_t requests = any ? kPrefillRequests : 0, tokens = any ? g.max_tokens() : 0;
  const std::int64_t decodes = g.max_decode_tokens();
  key_columns = requests * g.states();
  keys = memory.allocate<std::uint8_t>(key_columns * g.index_dim, "gathered keys");
  key_scales = memory.allocate<float>(key_columns, "gathered key scales");
  logits = memory.allocate<float>(tokens * key_columns, "prefill logits");
  packed_codes =
      memory.allocate<std::uint8_t>(decodes * g.index_heads * g.index_dim, "packed index_q_codes");
  packed_scales = memory.allocate<float>(decodes * g.index_heads, "packed index_scales");
  packed_top_k = memory.allocate<std::int32_t>(decodes * g.top_k, "packed top_k");
}

Indexer::Indexer(const Geometry& geometry, Cache keys, const ModelSite& site)
    : geometry_(geometry),
      keys_(keys),
      dialect_(site.dialect),
      policy_(*site.policies.top_k),
      index_policy_(*site.policies.index),
      schedule_(geometry, site),
      space_(geometry, site.memory) {}

void Indexer::run(const StepContext& step, const Layer& layer) const {
  const StepPlan& plan = step.plan;
  reset(step, layer.place.with("top-k reset"), layer.top_k, plan.tokens);
  for (std::size_t chunk = 0; chunk < plan.prefill.chunks.size(); ++chunk) {
    rank_prefill(step, layer, chunk);
  }
  const std::int64_t rows = step.decode_rows();
  if (rows == 0) return;
  if (plan.packed) return rank_packed(step, layer);
  rank_decode(step, layer,
              {layer.codes, layer.scales, step.inputs.state_lens, layer.top_k, rows / plan.next_n,
               plan.next_n});
}

void Indexer::reset(const StepContext& step, const CallPlace& place, std::int32_t* top_k,
                    std::int64_t rows) const {
  const auto byte = policy_.reset();
  if (!byte) return;
  step.call("fill_rows", place,
            plumb_fill_rows_params{
                .out = reinterpret_cast<std::uint8_t*>(top_k),
                .rows = rows,
                .row_bytes = geometry_.top_k * static_cast<std::int64_t>(sizeof *top_k),
                .value = *byte,
                .stream = nullptr});
}

void Indexer::rank_decode(const StepContext& step, const Layer& layer, const Batch& batch) const {
  const Geometry& g = geometry_;
  const std::int64_t next_n = batch.next_n;
  plumb_fp8_paged_mqa_logits_params logits{
      .q = batch.codes,
      .cache = layer.cache,
      .weights = batch.scales,
      .context_lens = batch.lens,
      .block_table = step.inputs.block_tables[static_cast<int>(keys_)],
      .logits = layer.logits,
      .requests = batch.requests,
      .max_context_len = g.states(),
      .logits_row_stride = g.states(),
      .context_lens_row_stride = next_n,
      .block_table_row_stride = g.blocks_per_request(keys_),
      .context_lens_dims = 2,
      .next_n = next_n,
      .heads = g.index_heads,
      .dim = g.index_dim,
      .shuffled = 0,
      .clean_logits = 0,
      .q_dialect = dialect_,
      .stream = nullptr};
  schedule_.hand_out(logits);
  step.call("fp8_paged_mqa_logits", layer.place.with("index logits"), logits);
  const std::int64_t ranked =
      policy_.ranked(batch.requests, batch.next_n, step.plan.num_decode_tokens);
  step.call("top_k_per_row_decode", layer.place.with("top-k"),
            plumb_top_k_per_row_decode_params{.logits = layer.logits,
                                              .seq_lens = batch.lens,
                                              .indices = batch.top_k,
                                              .rows = ranked * batch.next_n,
                                              .columns = g.states(),
                                              .logits_row_stride = g.states(),
                                              .logits_column_stride = 1,
                                              .seq_lens_row_stride = next_n,
                                              .seq_lens_dims = 2,
                                              .next_n = next_n,
                                              .k = g.top_k,
                                              .indices_row_stride = g.top_k,
                                              .stream = nullptr});
}

// Requests with different numbers of query tokens: pads each to next_n rows, because the kernels
// take one length for all. Padding rows score 0, and no kernel unpacks their top-k.
void Indexer::rank_packed(const StepContext& step, const Layer& layer) const {
  const Geometry& g = geometry_;
  const StepPlan& plan = step.plan;
  // As bytes: padding of numbers is -inf, and a score of 0 times that is none.
  const auto pack = [&](const char* name, const void* x, void* out, std::int64_t columns) {
    step.call("pack_seq", layer.place.with(name),
              plumb_pack_seq_params{.x = x,
                                    .lengths = step.inputs.decode_lens,
                                    .out = out,
                                    .tokens = plan.num_decode_tokens,
                                    .sequences = plan.num_decodes,
                                    .max_length = plan.next_n,
                                    .columns = columns,
                                    .x_row_stride = columns,
                                    .element_bytes = 1,
                                    .out_sequence_stride = plan.next_n * columns,
                                    .out_row_stride = columns,
                                    .pad_bits = 0,
                                    .stream = nullptr});
  };
  constexpr std::int64_t kScaleBytes = sizeof *layer.scales;
  pack("packed index q", layer.codes, space_.packed_codes, g.index_heads * g.index_dim);
  pack("packed index scales", layer.scales, space_.packed_scales, g.index_heads * kScaleBytes);
  reset(step, layer.place.with("packed top-k reset"), space_.packed_top_k,
        plan.num_decodes * plan.next_n);
  rank_decode(step, layer,
              {space_.packed_codes, space_.packed_scales, step.inputs.packed_state_lens,
               space_.packed_top_k, plan.num_decodes, plan.next_n});
  step.call("unpack_seq", layer.place.with("unpacked top-k"),
            plumb_unpack_seq_params{.x = space_.packed_top_k,
                                    .lengths = step.inputs.decode_lens,
                                    .out = layer.top_k,
                                    .tokens = plan.num_decode_tokens,
                                    .sequences = plan.num_decodes,
                                    .max_length = plan.next_n,
                                    .columns = g.top_k,
                                    .out_row_stride = g.top_k,
                                    .element_bytes = 4,
                                    .stream = nullptr});
}

// A chunk without keys leaves its top-k rows as reset.
void Indexer::rank_prefill(const StepContext& step, const Layer& layer, std::size_t number) const {
  const Geometry& g = geometry_;
  const PrefillChunk& chunk = step.plan.prefill.chunks[number];
  if (chunk.keys == 0) return;
  if (index_policy_.gathers_keys(layer.place.layer)) gather_keys(step, layer, number);
  const std::int64_t first = chunk.first_token - step.plan.num_decode_tokens;
  const std::int32_t *starts = step.inputs.prefill.starts + first,
                     *ends = step.inputs.prefill.ends + first;
  const std::int64_t columns = space_.key_columns;
  const std::int64_t weights =
      index_policy_.first_weights(chunk.first_token, step.plan.num_decode_tokens);
  step.call("fp8_mqa_logits", layer.place.with("index logits").in_chunk(number),
            plumb_fp8_mqa_logits_params{
                .q = layer.codes + chunk.first_token * g.index_heads * g.index_dim,
                .k = space_.keys,
                .k_scale = space_.key_scales,
                .weights = layer.scales + weights * g.index_heads,
                .starts = starts,
                .ends = ends,
                .logits = space_.logits,
                .rows = chunk.tokens,
                .keys = chunk.keys,
                .logits_row_stride = columns,
                .heads = g.index_heads,
                .dim = g.index_dim,
                .max_seqlen_k = 0,
                .clean_logits = 0,
                .q_dialect = dialect_,
                .k_dialect = layer.cache.dialect,
                .stream = nullptr});
  step.call("top_k_per_row_prefill", layer.place.with("top-k").in_chunk(number),
            plumb_top_k_per_row_prefill_params{.logits = space_.logits,
                                               .row_starts = starts,
                                               .row_ends = ends,
                                               .indices = layer.top_k + chunk.first_token * g.top_k,
                                               .rows = chunk.tokens,
                                               .columns = columns,
                                               .logits_row_stride = columns,
                                               .logits_column_stride = 1,
                                               .k = g.top_k,
                                               .indices_row_stride = g.top_k,
                                               .stream = nullptr});
}

void Indexer::gather_keys(const StepContext& step, const Layer& layer, std::size_t number) const {
  const PrefillChunk& chunk = step.plan.prefill.chunks[number];
  const std::int64_t blocks = geometry_.blocks_per_request(keys_);
  step.call("cp_gather_indexer_k_quant_cache", layer.place.with("index keys").in_chunk(number),
            plumb_cp_gather_indexer_k_quant_cache_params{
                .cache = layer.cache,
                .block_table = step.inputs.block_tables[static_cast<int>(keys_)] +
                               chunk.first_request * blocks,
                .cu_seq_lens =
                    step.inputs.prefill.key_offsets + step.plan.prefill.first_key_offset(number),
                .token_to_seq = nullptr,
                .k = space_.keys,
                .k_scale = reinterpret_cast<std::uint8_t*>(space_.key_scales),
                .requests = chunk.requests,
                .keys = chunk.keys,
                .pages = blocks,
                .block_table_row_stride = blocks,
                .k_row_stride = geometry_.index_dim,
                .k_scale_row_stride = kIndexScaleBytes,
                .head_dim = geometry_.index_dim,
                .quant_block_size = geometry_.index_dim,
                .shuffled = 0,
                .request_of_key = PLUMB_REQUEST_BY_CU_SEQ_LENS,
                .stream = nullptr});
}

}  // namespace plumb::device::decode
