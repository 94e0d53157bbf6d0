// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/call_record.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "decode/recording/placeholder_references.h"
#include "decode/recording/prefill_records.h"
#include "decode/recording/record.h"
#include "decode/recording/v32_call_record.h"
#include "device/plumb_ops.h"

namespace plumb::cases {

namespace {

CallRecord of(const plumb_rms_norm_params& p) {
  return record("rms_norm", {{"tokens", p.tokens}, {"hidden", p.hidden}},
                {{"x", p.x}, {"weight", p.weight}, {"out", p.out}});
}

CallRecord of(const plumb_mtp_input_rms_norm_params& p) {
  return record("mtp_input_rms_norm",
                {{"tokens", p.tokens}, {"hidden", p.hidden}, {"hc_mult", p.hc_mult}},
                {{"embeds", p.embeds},
                 {"previous_hidden", p.previous_hidden},
                 {"positions", p.positions},
                 {"enorm_weight", p.enorm_weight},
                 {"hnorm_weight", p.hnorm_weight},
                 {"out_embeds", p.out_embeds},
                 {"out_hidden", p.out_hidden}});
}

CallRecord of(const plumb_mtp_shared_head_rms_norm_params& p) {
  return record("mtp_shared_head_rms_norm", {{"tokens", p.tokens}, {"hidden", p.hidden}},
                {{"x", p.x}, {"weight", p.weight}, {"out", p.out}});
}

CallRecord of(const plumb_q_kv_rms_norm_params& p) {
  return record("q_kv_rms_norm",
                {{"tokens", p.tokens}, {"q_hidden", p.q_hidden}, {"kv_hidden", p.kv_hidden}},
                {{"q", p.q},
                 {"kv", p.kv},
                 {"q_weight", p.q_weight},
                 {"kv_weight", p.kv_weight},
                 {"out_q", p.out_q},
                 {"out_kv", p.out_kv}});
}

// Angles of all positions, where the Problem has those of its own.
Binding angles(const float* cos_sin, std::int64_t positions) {
  return {"cos_sin", cos_sin, positions};
}

CallRecord of(const plumb_q_head_rms_norm_rope_params& p, std::int64_t positions) {
  return record(
      "q_head_rms_norm_rope", {{"tokens", p.tokens}, {"heads", p.heads}},
      {{"q", p.q}, {"positions", p.positions}, angles(p.cos_sin, positions), {"out", p.out}});
}

CallRecord of(const plumb_inverse_rope_params& p, std::int64_t positions) {
  return record("inverse_rope", {{"tokens", p.tokens}, {"heads", p.heads}},
                {{"positions", p.positions}, angles(p.cos_sin, positions), {"x", p.x}});
}

// What mhc_pre and its kin have in common.
template <class Params>
void add_mix(const Params& p, CallRecord& record) {
  record.row.integers["splits"] = p.splits;
  record.row.integers["fused_norm"] = p.norm_weight != nullptr ? 1 : 0;
  record.row.integers["sinkhorn_iterations"] = p.sinkhorn_iterations;
  const std::vector<Binding> more{{"fn", p.fn},
                                  {"scale", p.scale},
                                  {"base", p.base},
                                  {"norm_weight", p.norm_weight},
                                  {"residual_out", p.residual_out},
                                  {"post", p.post},
                                  {"comb", p.comb},
                                  {"layer_input", p.layer_input},
                                  {"partial_mixes", p.partial_mixes},
                                  {"partial_square_sums", p.partial_square_sums}};
  record.bindings.insert(record.bindings.end(), more.begin(), more.end());
}

CallRecord of(const plumb_mhc_pre_broadcast_params& p) {
  CallRecord call = record("mhc_pre_broadcast", {{"tokens", p.tokens}, {"hidden", p.hidden}},
                           {{"residual", p.residual}});
  add_mix(p, call);
  return call;
}

CallRecord of(const plumb_mhc_fused_post_pre_params& p) {
  CallRecord call = record("mhc_fused_post_pre", {{"tokens", p.tokens}, {"hidden", p.hidden}},
                           {{"x", p.x},
                            {"residual", p.residual},
                            {"post_before", p.post_before},
                            {"comb_before", p.comb_before}});
  add_mix(p, call);
  return call;
}

CallRecord of(const plumb_mhc_post_params& p) {
  return record(
      "mhc_post", {{"tokens", p.tokens}, {"hidden", p.hidden}},
      {{"x", p.x}, {"residual", p.residual}, {"post", p.post}, {"comb", p.comb}, {"out", p.out}});
}

CallRecord of(const plumb_hc_head_params& p) {
  return record("hc_head",
                {{"tokens", p.tokens},
                 {"hidden", p.hidden},
                 {"round_twice", p.rounding == PLUMB_ROUND_TWICE ? 1 : 0}},
                {{"hidden_states", p.hidden_states},
                 {"fn", p.fn},
                 {"scale", p.scale},
                 {"base", p.base},
                 {"out", p.out}});
}

CallRecord of(const plumb_quantize_and_insert_k_cache_params& p) {
  return record("quantize_and_insert_k_cache",
                {{"tokens", p.tokens}, {"page", p.cache.page}, {"blocks", p.cache.num_blocks}},
                {{"kv", p.kv}, {"slot_mapping", p.slot_mapping}, {"cache", p.cache.data}},
                {{"dialect", word_of(p.cache.dialect)}});
}

CallRecord of(const plumb_indexer_k_quant_and_cache_params& p) {
  return record("indexer_k_quant_and_cache",
                {{"tokens", p.tokens},
                 {"page", p.cache.page},
                 {"blocks", p.cache.num_blocks},
                 {"head_dim", p.head_dim},
                 {"quant_block", p.quant_block_size},
                 {"ue8m0", p.ue8m0}},
                {{"k", p.k}, {"slot_mapping", p.slot_mapping}, {"cache", p.cache.data}},
                {{"dialect", word_of(p.cache.dialect)}});
}

CallRecord of(const plumb_indexer_q_rope_quant_params& p, std::int64_t positions) {
  return record("indexer_q_rope_quant",
                {{"tokens", p.tokens},
                 {"heads", p.heads},
                 {"dim", p.dim},
                 {"rope_dim", p.rope_dim},
                 {"rope_offset", p.rope_offset},
                 {"positions", positions}},
                {{"q", p.q},
                 {"positions", p.positions},
                 {"cos_sin", p.cos_sin},
                 {"weights", p.weights},
                 {"q_out", p.q_out},
                 {"weights_out", p.weights_out}},
                {{"rope_pairs", p.rope_pairs == PLUMB_ROPE_HALVES ? "halves" : "interleaved"},
                 {"dialect", word_of(p.dialect)}});
}

CallRecord of(const plumb_fp8_paged_mqa_logits_params& p) {
  return record("fp8_paged_mqa_logits",
                {{"requests", p.requests},
                 {"next_n", p.next_n},
                 {"context_lens_dims", p.context_lens_dims},
                 {"length", p.max_context_len},
                 {"heads", p.heads},
                 {"dim", p.dim},
                 {"page", p.cache.page},
                 {"blocks", p.cache.num_blocks}},
                {{"q", p.q},
                 {"cache", p.cache.data},
                 {"weights", p.weights},
                 {"context_lens", p.context_lens},
                 {"block_table", p.block_table, p.requests, p.block_table_stride * kWord},
                 {"logits", p.logits, p.requests * p.next_n, p.logits_row_stride * kWord}},
                {{"q_dialect", word_of(p.q_dialect)}, {"dialect", word_of(p.cache.dialect)}});
}

CallRecord of(const plumb_top_k_per_row_decode_params& p) {
  return record("top_k_per_row_decode",
                {{"requests", p.num_rows / p.next_n},
                 {"next_n", p.next_n},
                 {"seq_lens_dims", p.seq_lens_dims},
                 {"length", p.columns},
                 {"k", p.k}},
                {{"logits", p.logits}, {"seq_lens", p.seq_lens}, {"indices", p.indices}});
}

// Which requests tokens belong to, no call says: every table that they could be of is there.
std::int64_t most_requests(std::int64_t tokens, std::int64_t max_requests) {
  return std::min(tokens, max_requests);
}

// What both forms of the mapping have in common.
template <class Params>
CallRecord mapping(std::string_view op, const Params& p, std::int64_t max_requests,
                   const std::vector<Binding>& outputs) {
  CallRecord call = record(op,
                           {{"tokens", p.tokens},
                            {"topk", p.topk},
                            {"blocks", p.block_table_row_stride},
                            {"block_size", p.block_size}},
                           {{"topk_indices", p.topk_indices},
                            {"token_to_req", p.token_to_req},
                            {"block_table", p.block_table, most_requests(p.tokens, max_requests)},
                            {"is_valid_token", p.is_valid_token},
                            {"lens", p.lens}});
  call.bindings.insert(call.bindings.end(), outputs.begin(), outputs.end());
  return call;
}

CallRecord of(const plumb_compute_global_topk_ragged_indices_and_indptr_params& p,
              std::int64_t max_requests) {
  return mapping("compute_global_topk_ragged_indices_and_indptr", p, max_requests,
                 {{"flat", p.flat}, {"indptr", p.indptr}});
}

CallRecord of(const plumb_compute_global_topk_indices_and_lens_params& p,
              std::int64_t max_requests) {
  return mapping("compute_global_topk_indices_and_lens", p, max_requests,
                 {{"global_indices", p.global_indices}});
}

CallRecord of(const plumb_swa_decode_metadata_params& p) {
  return record("swa_decode_metadata",
                {{"requests", p.requests},
                 {"tokens", p.tokens},
                 {"context", p.block_table_row_stride * p.page},
                 {"window", p.window},
                 {"page", p.page},
                 {"more_buffer_tokens", 0}},
                {{"query_start_loc", p.query_start_loc},
                 {"seq_lens", p.seq_lens},
                 {"slot_mapping", p.slot_mapping},
                 {"block_table", p.block_table},
                 {"swa_indices", p.swa_indices},
                 {"swa_lens", p.swa_lens},
                 {"token_to_req", p.token_to_req},
                 {"is_valid_token", p.is_valid_token},
                 {"gather_lens", p.gather_lens}});
}

CallRecord of(const plumb_c128a_decode_metadata_params& p, std::int64_t max_requests) {
  return record("c128a_decode_metadata",
                {{"decode_tokens", p.decode_tokens},
                 {"prefill_tokens", p.prefill_tokens},
                 {"context", p.max_compressed * 128},
                 {"max_compressed", p.max_compressed},
                 {"block_size", p.block_size},
                 {"more_buffer_tokens", 0}},
                {{"positions", p.positions},
                 {"slot_mapping", p.slot_mapping},
                 {"token_to_req", p.token_to_req},
                 {"block_table", p.block_table, most_requests(p.decode_tokens, max_requests)},
                 {"decode_slots", p.decode_slots},
                 {"decode_lens", p.decode_lens},
                 {"prefill_indices", p.prefill_indices}});
}

CallRecord of(const plumb_build_ragged_indices_from_dense_params& p) {
  return record(
      "build_ragged_indices_from_dense",
      {{"rows", p.rows}, {"width", p.width}, {"num_rows", p.num_rows}},
      {{"indices", p.indices}, {"lengths", p.lengths}, {"indptr", p.indptr}, {"flat", p.flat}});
}

CallRecord of(const plumb_copy_ragged_to_graph_buffers_params& p) {
  return record("copy_ragged_to_graph_buffers",
                {{"rows", p.rows}, {"max_per_row", p.max_per_row}, {"more_buffer_rows", 0}},
                {{"indices", p.indices},
                 {"indptr", p.indptr},
                 {"indices_buffer", p.indices_buffer},
                 {"indptr_buffer", p.indptr_buffer}});
}

void bind_candidates(const std::string& side, const plumb_mla_candidates& candidates,
                     CallRecord& call) {
  call.bindings.push_back({side + "_indices", candidates.indices});
  if (candidates.indptr != nullptr) {
    call.bindings.push_back({side + "_indptr", candidates.indptr});
  } else {
    call.bindings.push_back({side + "_lengths", candidates.lengths});
  }
}

CallRecord of(const plumb_sparse_mla_decode_params& p) {
  CallRecord call = record("sparse_mla_decode",
                           {{"requests", p.requests},
                            {"queries", p.queries},
                            {"heads", p.heads},
                            {"width", p.main.width},
                            {"page", p.main_cache.page},
                            {"blocks", p.main_cache.num_blocks},
                            {"parts", p.plan->num_parts},
                            {"block_n", p.plan->block_n},
                            {"fixed_overhead", p.plan->fixed_overhead}},
                           {{"q", p.q},
                            {"main_cache", p.main_cache.data},
                            {"attn_sink", p.attn_sink},
                            {"out", p.out},
                            {"lse", p.lse},
                            {"partial_out", p.partial_out},
                            {"partial_lse", p.partial_lse},
                            {"tiles", p.plan->tiles},
                            {"num_splits", p.plan->num_splits}},
                           {{"dialect", word_of(p.main_cache.dialect)}});
  call.row.words["form"] = p.main.indptr != nullptr ? "ragged" : "dense";
  bind_candidates("main", p.main, call);
  if (p.main_cache.layout == PLUMB_MLA_V32) call.row.words["layout"] = "v32";
  if (p.attn_sink == nullptr) call.row.words["sinks"] = "none";
  if (p.extra_cache.data == nullptr) return call;
  call.row.integers["extra_width"] = p.extra.width;
  call.row.integers["extra_page"] = p.extra_cache.page;
  call.row.integers["extra_blocks"] = p.extra_cache.num_blocks;
  call.row.words["extra_dialect"] = word_of(p.extra_cache.dialect);
  call.bindings.push_back({"extra_cache", p.extra_cache.data});
  bind_candidates("extra", p.extra, call);
  return call;
}

CallRecord of(const plumb_sqrt_softplus_topk_params& p) {
  return record("sqrt_softplus_topk",
                {{"tokens", p.tokens},
                 {"experts", p.experts},
                 {"topk", p.topk},
                 {"padding_mask", p.is_padding != nullptr ? 1 : 0},
                 {"renormalize", p.renormalize}},
                {{"logits", p.logits},
                 {"bias", p.bias},
                 {"is_padding", p.is_padding},
                 {"weights", p.weights},
                 {"ids", p.ids}});
}

}  // namespace

std::optional<CallRecord> record_of(const device::decode::Call& call,
                                    const device::decode::Geometry& geometry) {
  const std::int64_t positions = geometry.max_context, requests = geometry.max_requests;
#define PLUMB_RECORD(name, ...)                                                                    \
  if (call.op == #name) {                                                                          \
    return of(*static_cast<const plumb_##name##_params*>(call.params) __VA_OPT__(, ) __VA_ARGS__); \
  }
  PLUMB_RECORD(rms_norm)
  PLUMB_RECORD(mtp_input_rms_norm)
  PLUMB_RECORD(mtp_shared_head_rms_norm)
  PLUMB_RECORD(q_kv_rms_norm)
  PLUMB_RECORD(q_head_rms_norm_rope, positions)
  PLUMB_RECORD(inverse_rope, positions)
  PLUMB_RECORD(mhc_pre_broadcast)
  PLUMB_RECORD(mhc_fused_post_pre)
  PLUMB_RECORD(mhc_post)
  PLUMB_RECORD(hc_head)
  PLUMB_RECORD(quantize_and_insert_k_cache)
  PLUMB_RECORD(indexer_k_quant_and_cache)
  PLUMB_RECORD(indexer_q_rope_quant, positions)
  PLUMB_RECORD(fp8_paged_mqa_logits)
  PLUMB_RECORD(top_k_per_row_decode)
  PLUMB_RECORD(compute_global_topk_ragged_indices_and_indptr, requests)
  PLUMB_RECORD(compute_global_topk_indices_and_lens, requests)
  PLUMB_RECORD(swa_decode_metadata)
  PLUMB_RECORD(c128a_decode_metadata, requests)
  PLUMB_RECORD(build_ragged_indices_from_dense)
  PLUMB_RECORD(copy_ragged_to_graph_buffers)
  PLUMB_RECORD(sparse_mla_decode)
  PLUMB_RECORD(sqrt_softplus_topk)
  PLUMB_RECORD(pack_seq)
  PLUMB_RECORD(unpack_seq)
  PLUMB_RECORD(fp8_mqa_logits)
  PLUMB_RECORD(top_k_per_row_prefill)
  PLUMB_RECORD(dequantize_and_gather_k_cache)
  PLUMB_RECORD(combine_topk_swa_indices_ragged)
  PLUMB_RECORD(sparse_mla_prefill)
#undef PLUMB_RECORD
  if (std::optional<CallRecord> found = v32_record_of(call, geometry)) return found;
  if (is_placeholder(call.op)) return std::nullopt;
  throw std::invalid_argument("no decode step is known to call " + std::string(call.op));
}

}  // namespace plumb::cases
