// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/model_order.h"

#include <algorithm>
#include <set>

namespace plumb::cases {

namespace {

using device::decode::Architecture;
using device::decode::Attention;
using device::decode::Geometry;
using Ops = std::vector<OpInModel>;

void append(Ops ops, Ops& to) { std::ranges::move(ops, std::back_inserter(to)); }

OpInModel norm(std::string_view op, std::string label) {
  return {op, {{"weight", std::move(label)}}};
}

// `name`: of its weights, "layer 1 ffn".
OpInModel mix(std::string_view op, const std::string& name) {
  return {op,
          {{"fn", name + " fn"},
           {"scale", name + " scale"},
           {"base", name + " base"},
           {"norm_weight", name + " norm"}}};
}

Ops compressor(const std::string& name) {
  return {{"save_partial_states", {{"ape", name + " ape"}}},
          norm("compress_norm_rope_insert", name + " norm")};
}

OpInModel q_kv_norm(const std::string& layer) {
  return {"q_kv_rms_norm", {{"q_weight", layer + " q_norm"}, {"kv_weight", layer + " kv_norm"}}};
}

std::string layer_name(const std::string& prefix, std::size_t number) {
  return prefix + "layer " + std::to_string(number);
}

// One V4 layer, from its projections to its router.
Ops v4_layer(Attention kind, const std::string& layer) {
  Ops ops{q_kv_norm(layer), {"q_head_rms_norm_rope"}, {"quantize_and_insert_k_cache"}};
  if (kind != Attention::window) append(compressor(layer + " compressor"), ops);
  if (kind == Attention::c4a) {
    append(compressor(layer + " index compressor"), ops);
    ops.push_back({"indexer_q_rope_quant"});
  }
  append({{"inverse_rope"},
          mix("mhc_fused_post_pre", layer + " ffn"),
          {"sqrt_softplus_topk", {{"bias", layer + " router bias"}}}},
         ops);
  return ops;
}

// `first`: the mix before the first layer.
Ops v4_layers(std::string_view first, const std::vector<Attention>& kinds,
              const std::string& prefix) {
  Ops ops;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string layer = layer_name(prefix, i);
    ops.push_back(mix(i == 0 ? first : "mhc_fused_post_pre", layer + " attention"));
    append(v4_layer(kinds[i], layer), ops);
  }
  const std::string head = prefix + "hc_head";
  append(
      {{"mhc_post"},
       {"hc_head", {{"fn", head + " fn"}, {"scale", head + " scale"}, {"base", head + " base"}}}},
      ops);
  return ops;
}

Ops v32_model(const Geometry& geometry) {
  Ops ops{norm("rms_norm", "layer 0 attention norm")};
  for (std::size_t i = 0; i < geometry.layers.size(); ++i) {
    const std::string layer = layer_name("", i);
    const bool last = i + 1 == geometry.layers.size();
    append({q_kv_norm(layer),
            {"concat_and_cache_ds_mla"},
            {"indexer_k_quant_and_cache"},
            {"indexer_q_rope_quant"},
            norm("fused_add_rms_norm", layer + " ffn norm"),
            {"grouped_topk", {{"bias", layer + " router bias"}}},
            norm("fused_add_rms_norm",
                 last ? "final norm" : layer_name("", i + 1) + " attention norm")},
           ops);
  }
  return ops;
}

Ops target(const Geometry& geometry) {
  if (geometry.architecture == Architecture::v32) return v32_model(geometry);
  Ops ops = v4_layers("mhc_pre_broadcast", geometry.layers, "");
  ops.push_back(norm("rms_norm", "final norm"));
  return ops;
}

Ops drafter() {
  Ops ops{
      {"mtp_input_rms_norm", {{"enorm_weight", "draft enorm"}, {"hnorm_weight", "draft hnorm"}}}};
  append(v4_layers("mhc_fused_post_pre", {Attention::window}, "draft "), ops);
  ops.push_back(norm("mtp_shared_head_rms_norm", "draft final norm"));
  return ops;
}

}  // namespace

std::vector<OpInModel> ops_of_model(const Geometry& geometry, bool drafts) {
  Ops ops = target(geometry);
  if (drafts) append(drafter(), ops);
  return ops;
}

bool has_its_place(std::string_view op) {
  static const std::set<std::string_view> ops{"rms_norm",
                                              "fused_add_rms_norm",
                                              "q_kv_rms_norm",
                                              "mtp_input_rms_norm",
                                              "mtp_shared_head_rms_norm",
                                              "q_head_rms_norm_rope",
                                              "inverse_rope",
                                              "quantize_and_insert_k_cache",
                                              "concat_and_cache_ds_mla",
                                              "save_partial_states",
                                              "compress_norm_rope_insert",
                                              "mhc_pre",
                                              "indexer_k_quant_and_cache",
                                              "indexer_q_rope_quant",
                                              "mhc_pre_broadcast",
                                              "mhc_fused_post_pre",
                                              "mhc_post",
                                              "hc_head",
                                              "sqrt_softplus_topk",
                                              "grouped_topk",
                                              "hash_routing"};
  return ops.contains(op);
}

}  // namespace plumb::cases
