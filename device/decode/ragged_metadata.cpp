// SPDX-License-Identifier: Apache-2.0
#include "device/decode/ragged_metadata.h"

#include <algorithm>
#include <string>

namespace plumb::device::decode {

namespace {

Ragged allocate_ragged(const std::string& name, std::int64_t tokens, std::int64_t width,
                       Memory& memory) {
  return {memory.allocate<std::int32_t>(tokens * width, name + " indices"),
          memory.allocate<std::int32_t>(tokens + 1, name + " indptr"), width};
}

}  // namespace

RaggedMetadata::RaggedMetadata(const Geometry& geometry, const MetadataPolicy& policy,
                               Memory& memory, CachingAllocator& temporaries)
    : geometry_(geometry), policy_(policy), temporaries_(temporaries) {
  const std::int64_t tokens = geometry.max_tokens(), width = geometry.c128a_width();
  window_.persistent = allocate_ragged("window", tokens, geometry.window, memory);
  c128a_.persistent = allocate_ragged("c128a", tokens, width, memory);
  window_slots_ = memory.allocate<std::int32_t>(tokens * geometry.window, "window slots");
  window_lens_ = memory.allocate<std::int32_t>(tokens, "window lens");
  token_to_req_ = memory.allocate<std::int32_t>(tokens, "token_to_req");
  is_valid_token_ = memory.allocate<std::uint8_t>(tokens, "is_valid_token");
  gather_lens_ = memory.allocate<std::int32_t>(geometry.max_requests, "gather_lens");
  c128a_slots_ = memory.allocate<std::int32_t>(tokens * width, "c128a slots");
  c128a_lens_ = memory.allocate<std::int32_t>(tokens, "c128a lens");
  c128a_prefill_ = memory.allocate<std::int32_t>(tokens * width, "c128a prefill indices");
}

void RaggedMetadata::build(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  const std::int64_t rows = plan.decode_rows();
  const auto table_columns = [&](Cache cache) { return geometry_.blocks_per_request(cache); };
  call("swa_decode_metadata", "window metadata",
       plumb_swa_decode_metadata_params{.query_start_loc = inputs.query_start_loc,
                                        .seq_lens = inputs.seq_lens,
                                        .slot_mapping = inputs.slot_mapping[0],
                                        .block_table = inputs.block_tables[0],
                                        .swa_indices = window_slots_,
                                        .swa_lens = window_lens_,
                                        .token_to_req = token_to_req_,
                                        .is_valid_token = is_valid_token_,
                                        .gather_lens = gather_lens_,
                                        .tokens = rows,
                                        .requests = plan.requests,
                                        .window = geometry_.window,
                                        .page = geometry_.pages[0],
                                        .block_table_row_stride = table_columns(Cache::window),
                                        .swa_row_stride = geometry_.window,
                                        .stream = nullptr});
  flatten(call, "window", window_slots_, window_lens_, rows, window_);
  const auto& layers = geometry_.layers;
  if (std::find(layers.begin(), layers.end(), Attention::c128a) == layers.end()) return;
  constexpr int kLong = static_cast<int>(Cache::c128a);
  call("c128a_decode_metadata", "c128a metadata",
       plumb_c128a_decode_metadata_params{.positions = inputs.positions,
                                          .slot_mapping = inputs.slot_mapping[0],
                                          .token_to_req = token_to_req_,
                                          .block_table = inputs.block_tables[kLong],
                                          .decode_slots = c128a_slots_,
                                          .decode_lens = c128a_lens_,
                                          .prefill_indices = c128a_prefill_,
                                          .decode_tokens = rows,
                                          .prefill_tokens = plan.prefill_tokens(),
                                          .max_compressed = geometry_.c128a_width(),
                                          .block_size = geometry_.pages[kLong],
                                          .block_table_row_stride = table_columns(Cache::c128a),
                                          .decode_row_stride = geometry_.c128a_width(),
                                          .prefill_row_stride = geometry_.c128a_width(),
                                          .stream = nullptr});
  flatten(call, "c128a", c128a_slots_, c128a_lens_, rows, c128a_);
}

void RaggedMetadata::flatten(const Caller& call, const std::string& name, const std::int32_t* dense,
                             const std::int32_t* lengths, std::int64_t rows, Lists& to) {
  if (rows == 0) return;
  const std::int64_t width = to.persistent.width;
  const Ragged built{words(rows * width, name + " flat"), words(rows + 1, name + " new indptr"),
                     width};
  call("build_ragged_indices_from_dense", name + " ragged",
       plumb_build_ragged_indices_from_dense_params{.indices = dense,
                                                    .lengths = lengths,
                                                    .indptr = built.indptr,
                                                    .flat = built.indices,
                                                    .rows = rows,
                                                    .width = width,
                                                    .indices_row_stride = width,
                                                    .num_rows = -1,
                                                    .stream = nullptr});
  keep(call, name, built, rows, to);
  ++to.copies;
  to.handed_out = policy_.hands_out_persistent() ? to.persistent : built;
  temporaries_.free(built.indices);
  temporaries_.free(built.indptr);
}

std::int32_t* RaggedMetadata::words(std::int64_t count, const std::string& label) {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(std::int32_t);
  return static_cast<std::int32_t*>(temporaries_.allocate(bytes, label));
}

// What a policy does not keep goes to a temporary.
void RaggedMetadata::keep(const Caller& call, const std::string& name, const Ragged& built,
                          std::int64_t rows, const Lists& to) {
  std::int32_t *lost_indices = nullptr, *lost_indptr = nullptr;
  if (!policy_.copies_indices(to.copies)) {
    lost_indices = words(rows * built.width, name + " lost indices");
  }
  if (!policy_.copies_indptr(to.copies)) lost_indptr = words(rows + 1, name + " lost indptr");
  call("copy_ragged_to_graph_buffers", name + " to graph buffers",
       plumb_copy_ragged_to_graph_buffers_params{
           .indices = built.indices,
           .indptr = built.indptr,
           .indices_buffer = lost_indices != nullptr ? lost_indices : to.persistent.indices,
           .indptr_buffer = lost_indptr != nullptr ? lost_indptr : to.persistent.indptr,
           .rows = rows,
           .max_per_row = built.width,
           .stream = nullptr});
  if (lost_indices != nullptr) temporaries_.free(lost_indices);
  if (lost_indptr != nullptr) temporaries_.free(lost_indptr);
}

}  // namespace plumb::device::decode
