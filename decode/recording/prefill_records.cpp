// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/prefill_records.h"

#include "decode/recording/record.h"

namespace plumb::cases {

namespace {

template <class Params>
CallRecord packing(std::string_view op, const Params& p, const std::string& dtype) {
  return record(op,
                {{"sequences", p.sequences},
                 {"max_length", p.max_length},
                 {"columns", p.columns},
                 {"tokens", p.tokens}},
                {{"x", p.x}, {"lengths", p.lengths}, {"out", p.out}}, {{"dtype", dtype}});
}

}  // namespace

CallRecord of(const plumb_pack_seq_params& p) {
  return packing("pack_seq", p, p.element_bytes == 1 ? "u8" : "f32");
}

CallRecord of(const plumb_unpack_seq_params& p) { return packing("unpack_seq", p, "i32"); }

// All keys as one window: the rows' own follow from the tensors.
CallRecord of(const plumb_fp8_mqa_logits_params& p) {
  return record("fp8_mqa_logits",
                {{"rows", p.rows}, {"length", p.keys}, {"heads", p.heads}, {"dim", p.dim}},
                {{"q", p.q},
                 {"k", p.k},
                 {"k_scale", p.k_scale},
                 {"weights", p.weights},
                 {"starts", p.starts},
                 {"ends", p.ends},
                 {"logits", p.logits, p.rows, p.logits_row_stride * kWord}},
                {{"q_dialect", word_of(p.q_dialect)}, {"k_dialect", word_of(p.k_dialect)}});
}

CallRecord of(const plumb_top_k_per_row_prefill_params& p) {
  return record("top_k_per_row_prefill",
                {{"rows", p.num_rows},
                 {"length", p.columns},
                 {"row_gap", p.logits_row_stride - p.columns},
                 {"k", p.k}},
                {{"logits", p.logits},
                 {"row_starts", p.row_starts},
                 {"row_ends", p.row_ends},
                 {"indices", p.indices}});
}

CallRecord of(const plumb_dequantize_and_gather_k_cache_params& p) {
  CallRecord call = record("dequantize_and_gather_k_cache",
                           {{"requests", p.requests},
                            {"seq_len", p.pages * p.cache.page},
                            {"page", p.cache.page},
                            {"blocks", p.cache.num_blocks},
                            {"offset", p.offset},
                            {"rows", p.rows}},
                           {{"k_cache", p.cache.data},
                            {"block_table", p.block_table},
                            {"seq_lens", p.seq_lens},
                            {"workspace", p.out}},
                           {{"dialect", word_of(p.cache.dialect)}});
  if (p.gather_lens == nullptr) return call;
  call.row.words["gather"] = "window";
  call.bindings.push_back({"gather_lens", p.gather_lens});
  return call;
}

CallRecord of(const plumb_combine_topk_swa_indices_ragged_params& p) {
  return record("combine_topk_swa_indices_ragged",
                {{"requests", p.requests},
                 {"queries", 1},
                 {"tokens", p.tokens},
                 {"context", std::max<std::int64_t>(1, p.compressed_rows * p.ratio)},
                 {"ratio", p.ratio},
                 {"top_k", p.top_k},
                 {"topk_width", p.topk_width},
                 {"row_gap", p.topk_row_stride - p.topk_width},
                 {"window", p.window},
                 {"batched_tokens", p.rows_per_request - p.compressed_rows - p.window}},
                {{"query_start_loc", p.query_start_loc},
                 {"seq_lens", p.seq_lens},
                 {"gather_lens", p.gather_lens},
                 {"topk_indices", p.topk_indices},
                 {"flat", p.flat},
                 {"indptr", p.indptr},
                 {"lens", p.lens}});
}

CallRecord of(const plumb_sparse_mla_prefill_params& p) {
  return record("sparse_mla_prefill",
                {{"rows", p.rows},
                 {"heads", p.heads},
                 {"width", p.candidates.width},
                 {"key_dims", p.key_dims},
                 {"kv_rows", p.kv_rows},
                 {"logits", 0}},
                {{"q", p.q},
                 {"kv", p.kv, p.kv_rows},
                 {"kv_indices", p.candidates.indices},
                 {"kv_indptr", p.candidates.indptr},
                 {"attn_sink", p.attn_sink},
                 {"out", p.out}},
                {{"form", "ragged"}});
}

}  // namespace plumb::cases
