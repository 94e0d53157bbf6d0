// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/v32_call_record.h"

#include <algorithm>

#include "decode/recording/record.h"
#include "device/plumb_ops.h"

namespace plumb::cases {

namespace {

CallRecord of(const plumb_fused_add_rms_norm_params& p) {
  return record("fused_add_rms_norm",
                {{"tokens", p.tokens}, {"hidden", p.hidden}, {"fp32_sum", p.fp32_sum}},
                {{"x", p.x}, {"residual", p.residual}, {"weight", p.weight}});
}

CallRecord of(const plumb_concat_and_cache_ds_mla_params& p) {
  return record("concat_and_cache_ds_mla",
                {{"tokens", p.tokens}, {"page", p.cache.page}, {"blocks", p.cache.num_blocks}},
                {{"kv_c", p.kv_c},
                 {"k_pe", p.k_pe},
                 {"slot_mapping", p.slot_mapping},
                 {"cache", p.cache.data}},
                {{"dialect", word_of(p.cache.dialect)}});
}

CallRecord of(const plumb_v32_paged_metadata_params& p, const device::decode::Geometry& g) {
  return record("v32_paged_metadata",
                {{"requests", p.requests},
                 {"queries", g.query_tokens()},
                 {"context", g.max_context},
                 {"topk", p.topk},
                 {"more_tokens", p.max_tokens - p.requests * g.query_tokens()}},
                {{"query_start_loc", p.query_start_loc},
                 {"seq_lens", p.seq_lens},
                 {"req_id_per_token", p.req_id_per_token},
                 {"paged_kv_indices", p.paged_kv_indices},
                 {"extents", p.extents},
                 {"paged_kv_indptr", p.paged_kv_indptr}});
}

CallRecord of(const plumb_v32_paged_kv_indices_params& p, const device::decode::Geometry& g) {
  return record("v32_paged_kv_indices",
                {{"tokens", p.tokens},
                 {"topk", p.topk},
                 {"queries", 1},
                 {"blocks", p.blocks_per_request},
                 {"page", p.page}},
                {{"topk_indices", p.topk_indices},
                 {"req_id_per_token", p.req_id_per_token},
                 // Of all requests that the tokens could be of: no call says which they are.
                 {"block_table", p.block_table, std::min(p.tokens, g.max_requests)},
                 {"paged_kv_indptr", p.paged_kv_indptr},
                 {"paged_kv_indices", p.paged_kv_indices}});
}

CallRecord of(const plumb_grouped_topk_params& p) {
  return record("grouped_topk",
                {{"tokens", p.tokens},
                 {"experts", p.experts},
                 {"topk", p.topk},
                 {"renormalize", p.renormalize},
                 {"n_group", p.n_group},
                 {"topk_group", p.topk_group},
                 {"bf16", p.logits_format == PLUMB_BF16 ? 1 : 0}},
                {{"logits", p.logits}, {"bias", p.bias}, {"weights", p.weights}, {"ids", p.ids}});
}

}  // namespace

std::optional<CallRecord> v32_record_of(const device::decode::Call& call,
                                        const device::decode::Geometry& geometry) {
#define PLUMB_RECORD(name, ...)                                                                    \
  if (call.op == #name) {                                                                          \
    return of(*static_cast<const plumb_##name##_params*>(call.params) __VA_OPT__(, ) __VA_ARGS__); \
  }
  PLUMB_RECORD(fused_add_rms_norm)
  PLUMB_RECORD(concat_and_cache_ds_mla)
  PLUMB_RECORD(v32_paged_metadata, geometry)
  PLUMB_RECORD(v32_paged_kv_indices, geometry)
  PLUMB_RECORD(grouped_topk)
#undef PLUMB_RECORD
  return std::nullopt;
}

}  // namespace plumb::cases
