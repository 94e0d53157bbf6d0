// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/order_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace plumb::cases {

namespace {

using device::decode::Architecture;
using device::decode::Attention;
using device::decode::Geometry;
using Ops = std::vector<std::string_view>;

void append(const Ops& ops, Ops& to) { to.insert(to.end(), ops.begin(), ops.end()); }

// Fixed ops of one V4 layer, from its projections to its router.
Ops v4_layer(Attention kind) {
  Ops ops{"q_kv_rms_norm", "q_head_rms_norm_rope", "quantize_and_insert_k_cache"};
  const Ops compressor{"save_partial_states", "compress_norm_rope_insert"};
  if (kind != Attention::window) append(compressor, ops);
  if (kind == Attention::c4a) {
    append(compressor, ops);
    append({"indexer_q_rope_quant"}, ops);
  }
  append({"inverse_rope", "mhc_fused_post_pre", "sqrt_softplus_topk"}, ops);
  return ops;
}

Ops v4_layers(const std::vector<Attention>& kinds) {
  Ops ops;
  for (const Attention kind : kinds) {
    if (!ops.empty()) append({"mhc_fused_post_pre"}, ops);
    append(v4_layer(kind), ops);
  }
  append({"mhc_post", "hc_head"}, ops);
  return ops;
}

Ops v32_model(const Geometry& geometry) {
  Ops ops{"rms_norm"};
  for (std::size_t i = 0; i < geometry.layers.size(); ++i) {
    append({"q_kv_rms_norm", "concat_and_cache_ds_mla", "indexer_k_quant_and_cache",
            "indexer_q_rope_quant", "fused_add_rms_norm", "grouped_topk", "fused_add_rms_norm"},
           ops);
  }
  return ops;
}

Ops target(const Geometry& geometry) {
  if (geometry.architecture == Architecture::v32) return v32_model(geometry);
  Ops ops{"mhc_pre_broadcast"};
  append(v4_layers(geometry.layers), ops);
  append({"rms_norm"}, ops);
  return ops;
}

Ops drafter() {
  Ops ops{"mtp_input_rms_norm", "mhc_fused_post_pre"};
  append(v4_layers({Attention::window}), ops);
  append({"mtp_shared_head_rms_norm"}, ops);
  return ops;
}

// Whether the op has a fixed place in the model. Metadata, indexer and attention ops have none:
// their calls depend on the batch.
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

}  // namespace

void check_order(WatchedStep& step) {
  const auto& engine = step.twin.engine;
  Ops wanted = target(engine.geometry());
  if (engine.drafter() != nullptr) append(drafter(), wanted);
  std::size_t next = 0;
  std::int64_t position = 0;
  const auto find = [&](std::string_view op, const std::string& call, const char* what) {
    step.findings.add(Detector::order, position, std::string(op), call,
                      fmt::format("{} is {} the model's order of ops", op, what));
  };
  for (const auto& part : engine.parts()) {
    const auto enqueued = step.twin.recorder->latest(part.name);
    if (!part.replayed && enqueued && enqueued->tokens != part.tokens) return;  // other rows
    for (const auto& call : step.twin.recorder->enqueued(part)) {
      const bool expected = next < wanted.size() && call->op == wanted[next];
      if (expected || !has_its_place(call->op)) {
        next += expected ? 1 : 0;
        ++position;
        continue;
      }
      const bool left_out = next + 1 < wanted.size() && call->op == wanted[next + 1];
      return left_out ? find(wanted[next], call->place.name, "left out of")
                      : find(call->op, call->place.name, "called against");
    }
  }
  if (next < wanted.size()) find(wanted[next], std::string(wanted[next]), "left out of");
}

}  // namespace plumb::cases
