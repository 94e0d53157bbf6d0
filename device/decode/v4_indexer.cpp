// SPDX-License-Identifier: Apache-2.0
//
// The indexer of C4A layers   [4.6]: prefill chunks over gathered keys, what decodes over the paged
// cache, both into the rows of one top-k buffer.
#include "device/decode/stand_ins.h"
#include "device/decode/v4_layers.h"

namespace plumb::device::decode {

namespace {

constexpr int kStates = static_cast<int>(Cache::c4a);
constexpr std::uint32_t kMinusInfinity = 0xff800000;

}  // namespace

void V4Layers::run_indexer(const StepContext& step, std::size_t i) {
  const StepPlan& plan = step.plan;
  reset(step, layer_name(i, "top-k reset"), space_.top_k, plan.tokens);
  for (std::size_t chunk = 0; chunk < plan.prefill.chunks.size(); ++chunk) {
    rank_prefill(step, i, chunk);
  }
  const std::int64_t rows = step.decode_rows();
  if (rows == 0) return;
  if (plan.packed) return rank_packed(step, i);
  rank_decode(step, i,
              {space_.index_q_codes, space_.index_scales, step.inputs.state_lens, space_.top_k,
               rows / plan.next_n, plan.next_n});
}

void V4Layers::reset(const StepContext& step, const std::string& name, std::int32_t* top_k,
                     std::int64_t rows) const {
  const auto byte = policy_.reset();
  if (!byte) return;
  step.call("fill_rows", name,
            plumb_fill_rows_params{
                .out = reinterpret_cast<std::uint8_t*>(top_k),
                .rows = rows,
                .row_bytes = geometry_.top_k * static_cast<std::int64_t>(sizeof *top_k),
                .value = *byte,
                .stream = nullptr});
}

void V4Layers::rank_decode(const StepContext& step, std::size_t i, const DecodeIndexer& batch) {
  const Geometry& g = geometry_;
  const auto next_n = static_cast<std::int32_t>(batch.next_n);
  step.call(
      "fp8_paged_mqa_logits", layer_name(i, "index logits"),
      plumb_fp8_paged_mqa_logits_params{.q = batch.codes,
                                        .cache = indexer_cache(i),
                                        .weights = batch.scales,
                                        .context_lens = batch.lens,
                                        .block_table = step.inputs.block_tables[kStates],
                                        .logits = space_.logits,
                                        .requests = batch.requests,
                                        .max_context_len = g.states(),
                                        .logits_row_stride = g.states(),
                                        .context_lens_stride = next_n,
                                        .block_table_stride = g.blocks_per_request(Cache::c4a),
                                        .context_lens_dims = 2,
                                        .next_n = next_n,
                                        .heads = static_cast<std::int32_t>(g.index_heads),
                                        .dim = static_cast<std::int32_t>(g.index_dim),
                                        .shuffled = 0,
                                        .clean_logits = 0,
                                        .q_dialect = dialect_,
                                        .stream = nullptr});
  const std::int64_t ranked =
      policy_.ranked(batch.requests, batch.next_n, step.plan.num_decode_tokens);
  step.call("top_k_per_row_decode", layer_name(i, "top-k"),
            plumb_top_k_per_row_decode_params{.logits = space_.logits,
                                              .seq_lens = batch.lens,
                                              .indices = batch.top_k,
                                              .num_rows = ranked * batch.next_n,
                                              .columns = g.states(),
                                              .logits_row_stride = g.states(),
                                              .logits_column_stride = 1,
                                              .seq_lens_row_stride = next_n,
                                              .seq_lens_dims = 2,
                                              .next_n = next_n,
                                              .k = static_cast<std::int32_t>(g.top_k),
                                              .stream = nullptr});
}

// Requests of different length: all as long as the longest, whose kernels know one length only.
void V4Layers::rank_packed(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  const StepPlan& plan = step.plan;
  const auto pack = [&](const char* name, const void* x, void* out, std::int64_t columns,
                        std::int32_t bytes, std::uint32_t pad_bits) {
    step.call("pack_seq", layer_name(i, name),
              plumb_pack_seq_params{.x = x,
                                    .lengths = step.inputs.decode_lens,
                                    .out = out,
                                    .tokens = plan.num_decode_tokens,
                                    .sequences = plan.num_decodes,
                                    .max_length = plan.next_n,
                                    .columns = columns,
                                    .x_row_stride = columns,
                                    .element_bytes = bytes,
                                    .pad_bits = pad_bits,
                                    .stream = nullptr});
  };
  pack("packed index q", space_.index_q_codes, prefill_.packed_codes, g.index_heads * g.index_dim,
       1, 0);
  pack("packed index scales", space_.index_scales, prefill_.packed_scales, g.index_heads, 4,
       kMinusInfinity);
  reset(step, layer_name(i, "packed top-k reset"), prefill_.packed_top_k,
        plan.num_decodes * plan.next_n);
  rank_decode(step, i,
              {prefill_.packed_codes, prefill_.packed_scales, step.inputs.packed_state_lens,
               prefill_.packed_top_k, plan.num_decodes, plan.next_n});
  step.call("unpack_seq", layer_name(i, "unpacked top-k"),
            plumb_unpack_seq_params{.x = prefill_.packed_top_k,
                                    .lengths = step.inputs.decode_lens,
                                    .out = space_.top_k,
                                    .tokens = plan.num_decode_tokens,
                                    .sequences = plan.num_decodes,
                                    .max_length = plan.next_n,
                                    .columns = g.top_k,
                                    .out_row_stride = g.top_k,
                                    .element_bytes = 4,
                                    .stream = nullptr});
}

// A chunk without a compressed state keeps the rows that were reset.
void V4Layers::rank_prefill(const StepContext& step, std::size_t i, std::size_t number) {
  const Geometry& g = geometry_;
  const PrefillChunk& chunk = step.plan.prefill.chunks[number];
  if (chunk.keys == 0) return;
  gather_keys(step, chunk_name(i, "index keys", number), i, chunk);
  const std::int64_t first = chunk.first_token - step.plan.num_decode_tokens;
  const std::int32_t *starts = step.inputs.prefill.starts + first,
                     *ends = step.inputs.prefill.ends + first;
  const std::int64_t columns = prefill_.key_columns;
  step.call("fp8_mqa_logits", chunk_name(i, "index logits", number),
            plumb_fp8_mqa_logits_params{
                .q = space_.index_q_codes + chunk.first_token * g.index_heads * g.index_dim,
                .k = prefill_.keys,
                .k_scale = prefill_.key_scales,
                .weights = space_.index_scales + chunk.first_token * g.index_heads,
                .starts = starts,
                .ends = ends,
                .logits = prefill_.logits,
                .rows = chunk.tokens,
                .keys = chunk.keys,
                .logits_row_stride = columns,
                .heads = static_cast<std::int32_t>(g.index_heads),
                .dim = static_cast<std::int32_t>(g.index_dim),
                .max_seqlen_k = 0,
                .clean_logits = 0,
                .q_dialect = dialect_,
                .k_dialect = dialect_,
                .stream = nullptr});
  step.call(
      "top_k_per_row_prefill", chunk_name(i, "top-k", number),
      plumb_top_k_per_row_prefill_params{.logits = prefill_.logits,
                                         .row_starts = starts,
                                         .row_ends = ends,
                                         .indices = space_.top_k + chunk.first_token * g.top_k,
                                         .num_rows = chunk.tokens,
                                         .columns = columns,
                                         .logits_row_stride = columns,
                                         .logits_column_stride = 1,
                                         .k = static_cast<std::int32_t>(g.top_k),
                                         .stream = nullptr});
}

void V4Layers::gather_keys(const StepContext& step, const std::string& name, std::size_t i,
                           const PrefillChunk& chunk) {
  const PrefillInputs& prefill = step.inputs.prefill;
  const std::int64_t first = chunk.first_request - step.plan.num_decodes;
  const std::int64_t blocks = geometry_.blocks_per_request(Cache::c4a);
  step.call("gather_index_keys", name,
            plumb_gather_index_keys_params{
                .cache = indexer_cache(i),
                .block_table = step.inputs.block_tables[kStates] + chunk.first_request * blocks,
                .starts = prefill.key_starts + first,
                .lens = prefill.state_counts[kStates] + first,
                .k = prefill_.keys,
                .k_scale = prefill_.key_scales,
                .requests = chunk.requests,
                .keys = chunk.keys,
                .dim = geometry_.index_dim,
                .block_table_stride = blocks,
                .stream = nullptr});
}

void V4Layers::map_top_k(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  step.call("compute_global_topk_ragged_indices_and_indptr", layer_name(i, "top-k slots"),
            plumb_compute_global_topk_ragged_indices_and_indptr_params{
                .topk_indices = space_.top_k,
                .token_to_req = metadata_.token_to_req(),
                .block_table = step.inputs.block_tables[kStates],
                .is_valid_token = metadata_.is_valid_token(),
                .flat = space_.c4a.indices,
                .indptr = space_.c4a.indptr,
                .lens = space_.c4a_lens,
                .tokens = step.decode_rows(),
                .topk = g.top_k,
                .topk_row_stride = g.top_k,
                .block_table_row_stride = g.blocks_per_request(Cache::c4a),
                .block_size = g.pages[kStates],
                .stream = nullptr});
}

}  // namespace plumb::device::decode
