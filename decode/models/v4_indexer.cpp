// SPDX-License-Identifier: Apache-2.0
//
// C4A layers: the indexer, and the mapping of its top-k states to slots.
#include <plumb/ops/metadata.h>

#include "decode/models/v4_layers.h"
#include "device/kernels/placeholders/placeholder_kernels.h"

namespace plumb::device::decode {

namespace {

constexpr int kStates = static_cast<int>(Cache::c4a);

}  // namespace

void V4Layers::run_indexer(const StepContext& step, std::size_t i) {
  indexer_.run(step, {.place = place(i, ""),
                      .cache = indexer_cache(i),
                      .codes = space_.index_q_codes,
                      .scales = space_.index_scales,
                      .logits = space_.logits,
                      .top_k = space_.top_k});
}

plumb_mla_candidates V4Layers::c4a_candidates() const {
  if (geometry_.lists == Lists::ragged) return ragged_candidates(space_.c4a);
  return dense_candidates(space_.c4a.indices, space_.c4a_lens, geometry_.top_k);
}

void V4Layers::map_top_k(const StepContext& step, std::size_t i) {
  const Geometry& g = geometry_;
  if (g.lists == Lists::dense) {
    step.call("compute_global_topk_indices_and_lens", place(i, "top-k slots"),
              plumb_compute_global_topk_indices_and_lens_params{
                  .topk_indices = space_.top_k,
                  .token_to_req = metadata_->token_to_req(),
                  .block_table = step.inputs.block_tables[kStates],
                  .is_valid_token = metadata_->is_valid_token(),
                  .global_indices = space_.c4a.indices,
                  .lens = space_.c4a_lens,
                  .tokens = step.decode_rows(),
                  .topk = g.top_k,
                  .requests = step.plan.requests,
                  .blocks_per_request = g.blocks_per_request(Cache::c4a),
                  .topk_indices_row_stride = g.top_k,
                  .block_table_row_stride = g.blocks_per_request(Cache::c4a),
                  .block_size = g.pages[kStates],
                  .global_indices_row_stride = g.top_k,
                  .stream = nullptr,
                  .compaction = PLUMB_COMPACTION_LEFT,
                  .bounds = PLUMB_BOUNDS_CHECKED});
    return;
  }
  step.call("compute_global_topk_ragged_indices_and_indptr", place(i, "top-k slots"),
            plumb_compute_global_topk_ragged_indices_and_indptr_params{
                .topk_indices = space_.top_k,
                .token_to_req = metadata_->token_to_req(),
                .block_table = step.inputs.block_tables[kStates],
                .is_valid_token = metadata_->is_valid_token(),
                .flat = space_.c4a.indices,
                .indptr = space_.c4a.indptr,
                .lens = space_.c4a_lens,
                .tokens = step.decode_rows(),
                .topk = g.top_k,
                .topk_indices_row_stride = g.top_k,
                .block_table_row_stride = g.blocks_per_request(Cache::c4a),
                .block_size = g.pages[kStates],
                .stream = nullptr});
}

}  // namespace plumb::device::decode
