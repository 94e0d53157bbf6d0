// SPDX-License-Identifier: Apache-2.0
#include "decode/metadata/dense_metadata.h"

#include <plumb/ops/metadata.h>

#include <algorithm>

namespace plumb::device::decode {

plumb_mla_candidates dense_candidates(const std::int32_t* indices, const std::int32_t* lengths,
                                      std::int64_t width) {
  return {.indices = indices,
          .lengths = lengths,
          .indptr = nullptr,
          .request_stride = width,
          .query_stride = width,
          .width = width};
}

DenseMetadata::DenseMetadata(const Geometry& geometry, EngineMemory& memory) : geometry_(geometry) {
  const std::int64_t tokens = geometry.max_tokens(), width = geometry.c128a_width();
  window_slots_ = memory.allocate<std::int32_t>(tokens * geometry.window, "window slots");
  window_lens_ = memory.allocate<std::int32_t>(tokens, "window lens");
  token_to_req_ = memory.allocate<std::int32_t>(tokens, "token_to_req");
  is_valid_token_ = memory.allocate<std::uint8_t>(tokens, "is_valid_token");
  gather_lens_ = memory.allocate<std::int32_t>(geometry.max_requests, "gather_lens");
  c128a_slots_ = memory.allocate<std::int32_t>(tokens * width, "c128a slots");
  c128a_lens_ = memory.allocate<std::int32_t>(tokens, "c128a lens");
  c128a_prefill_ = memory.allocate<std::int32_t>(tokens * width, "c128a prefill indices");
}

void DenseMetadata::build(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  build_window(call, inputs, plan);
  if (has_c128a()) build_c128a(call, inputs, plan);
}

plumb_mla_candidates DenseMetadata::window() const {
  return dense_candidates(window_slots_, window_lens_, geometry_.window);
}

plumb_mla_candidates DenseMetadata::c128a() const {
  return dense_candidates(c128a_slots_, c128a_lens_, geometry_.c128a_width());
}

bool DenseMetadata::has_c128a() const {
  const auto& layers = geometry_.layers;
  return std::find(layers.begin(), layers.end(), Attention::c128a) != layers.end();
}

void DenseMetadata::build_window(const Caller& call, const StepInputs& inputs,
                                 const StepPlan& plan) {
  call("swa_decode_metadata", "window metadata",
       plumb_swa_decode_metadata_params{
           .query_start_loc = inputs.query_start_loc,
           .seq_lens = inputs.seq_lens,
           .slot_mapping = inputs.slot_mapping[0],
           .block_table = inputs.block_tables[0],
           .swa_indices = window_slots_,
           .swa_lens = window_lens_,
           .token_to_req = token_to_req_,
           .is_valid_token = is_valid_token_,
           .gather_lens = gather_lens_,
           .tokens = plan.decode_rows(),
           .requests = plan.requests,
           .window = geometry_.window,
           .page = geometry_.pages[0],
           .block_table_row_stride = geometry_.blocks_per_request(Cache::window),
           .swa_indices_row_stride = geometry_.window,
           .stream = nullptr,
           .invalid_row = PLUMB_NO_VALUE_MINUS_ONE});
}

void DenseMetadata::build_c128a(const Caller& call, const StepInputs& inputs,
                                const StepPlan& plan) {
  constexpr int kLong = static_cast<int>(Cache::c128a);
  call("c128a_decode_metadata", "c128a metadata",
       plumb_c128a_decode_metadata_params{
           .positions = inputs.positions,
           .slot_mapping = inputs.slot_mapping[0],
           .token_to_req = token_to_req_,
           .block_table = inputs.block_tables[kLong],
           .decode_slots = c128a_slots_,
           .decode_lens = c128a_lens_,
           .prefill_indices = c128a_prefill_,
           .decode_tokens = plan.decode_rows(),
           .prefill_tokens = plan.prefill_tokens(),
           .max_compressed = geometry_.c128a_width(),
           .block_size = geometry_.pages[kLong],
           .block_table_row_stride = geometry_.blocks_per_request(Cache::c128a),
           .decode_slots_row_stride = geometry_.c128a_width(),
           .prefill_indices_row_stride = geometry_.c128a_width(),
           .stream = nullptr});
}

}  // namespace plumb::device::decode
