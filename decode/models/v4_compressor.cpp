// SPDX-License-Identifier: Apache-2.0
//
// The compressor of C4A and C128A layers: each token's projection goes to the cache of partial
// states, and a token that ends a group compresses the window of its request into one state. C4A
// layers have a second compressor for the keys of the indexer   [10.1].
#include "decode/models/linear.h"
#include "decode/models/v4_layers.h"

namespace plumb::device::decode {

PartialStateLayout partial_states(Attention kind) {
  if (kind == Attention::c4a) return {Cache::c4a_partial, kC4a, kHeadDim, 1};
  return {Cache::c128a_partial, kC128a, kHeadDim, 0};
}

PartialStateLayout index_partial_states(const Geometry& geometry) {
  return {Cache::c4a_partial, kC4a, geometry.index_dim, 1};
}

void V4Layers::write_states(const CacheWrite& step, std::size_t i) {
  const Attention kind = geometry_.layers[i];
  if (kind == Attention::window) return;
  compress(step, i);
  if (kind == Attention::c4a) compress_index(step, i);
}

void V4Layers::compress(const CacheWrite& step, std::size_t i) {
  const Attention kind = geometry_.layers[i];
  const CompressorCall of{partial_states(kind), caches_[i].partial, space_.state_kv_score,
                          weights_.layers[i].compressor};
  linear(step.call, step.tokens, place(i, "state projection"), Projection::state,
         space_.layer_input, geometry_.hidden, space_.state_kv_score, 2 * of.states.width(),
         PLUMB_F32);
  const auto save_all = [&] { save(step, place(i, "partial states"), of); };
  const bool saves_first = compressor_policy_.saves_first();
  if (saves_first) save_all();
  if (!step.compresses) return;
  const Cache to = compressed_cache(kind);
  plumb_compress_norm_rope_insert_params params = compression(step, of);
  params.kv_slot_mapping = compressed_slots_.of(to);
  params.cache = written_cache(i, to);
  params.layout = PLUMB_COMPRESSED_MAIN;
  params.floor = PLUMB_COMPRESSED_FLOOR_AMAX;
  params.pad = PLUMB_PAD_ZERO;
  step.call("compress_norm_rope_insert", place(i, "compressed states"), params);
  if (!saves_first) save_all();
}

void V4Layers::compress_index(const CacheWrite& step, std::size_t i) {
  const CompressorCall of{index_partial_states(geometry_), caches_[i].index_partial,
                          space_.index_kv_score, weights_.layers[i].index_compressor};
  linear(step.call, step.tokens, place(i, "index state projection"), Projection::index_state,
         space_.layer_input, geometry_.hidden, space_.index_kv_score, 2 * of.states.width(),
         PLUMB_F32);
  save(step, place(i, "index partial states"), of);
  if (!step.compresses) return;
  plumb_compress_norm_rope_insert_params params = compression(step, of);
  params.kv_slot_mapping = compressed_slots_.of(Cache::c4a);
  params.cache = indexer_cache(i);
  if (!layer_policy_.has_index_norm()) params.weight = weights_.layers[i].compressor.norm;
  params.layout = PLUMB_COMPRESSED_INDEXER;
  params.scale_form = PLUMB_SCALE_POWER_OF_TWO;
  step.call("compress_norm_rope_insert", place(i, "index keys"), params);
}

void V4Layers::save(const CacheWrite& step, const CallPlace& place,
                    const CompressorCall& of) const {
  const std::int64_t width = of.states.width();
  step.call("save_partial_states", place,
            plumb_save_partial_states_params{
                .kv = of.kv_score,
                .score = of.kv_score + width,
                .ape = of.weights.ape,
                .positions = step.inputs.positions,
                .slot_mapping = step.inputs.slot_mapping[static_cast<int>(of.states.cache)],
                .states = state_cache(of.states, of.data),
                .tokens = step.tokens,
                .width = width,
                .ratio = of.states.ratio,
                .kv_row_stride = 2 * width,
                .score_row_stride = 2 * width,
                .stream = nullptr,
                .form = PLUMB_STATE_BIASED});
}

plumb_compress_norm_rope_insert_params V4Layers::compression(const CacheWrite& step,
                                                             const CompressorCall& of) const {
  const auto cache = static_cast<std::size_t>(of.states.cache);
  plumb_compress_norm_rope_insert_params params{};
  params.states = state_cache(of.states, of.data);
  params.block_table = step.inputs.block_tables[cache];
  params.token_to_req = step.inputs.token_to_req;
  params.positions = step.inputs.positions;
  params.slot_mapping = step.inputs.slot_mapping[cache];
  params.weight = of.weights.norm;
  params.cos_sin = weights_.cos_sin;
  params.tokens = step.tokens;
  params.head_dim = of.states.head_dim;
  params.ratio = of.states.ratio;
  params.overlap = of.states.overlap;
  params.block_table_row_stride = geometry_.blocks_per_request(of.states.cache);
  params.eps = kEps;
  params.form = PLUMB_STATE_BIASED;
  return params;
}

plumb_state_cache V4Layers::state_cache(const PartialStateLayout& states,
                                        std::uint8_t* data) const {
  const std::int64_t page = geometry_.pages[static_cast<int>(states.cache)];
  return {.data = data,
          .block_stride_bytes = page * states.row_bytes(),
          .row_stride_bytes = states.row_bytes(),
          .num_blocks = requests_.blocks(states.cache),
          .rows = page};
}

}  // namespace plumb::device::decode
