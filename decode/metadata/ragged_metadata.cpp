// SPDX-License-Identifier: Apache-2.0
#include "decode/metadata/ragged_metadata.h"

#include <plumb/ops/metadata.h>

#include <string>

namespace plumb::device::decode {

namespace {

Ragged allocate_ragged(const std::string& name, std::int64_t tokens, std::int64_t width,
                       EngineMemory& memory) {
  return {memory.allocate<std::int32_t>(tokens * width, name + " indices"),
          memory.allocate<std::int32_t>(tokens + 1, name + " indptr"), width};
}

}  // namespace

plumb_mla_candidates ragged_candidates(const Ragged& ragged) {
  return {.indices = ragged.indices,
          .lengths = nullptr,
          .indptr = ragged.indptr,
          .request_stride = 0,
          .query_stride = 0,
          .width = ragged.width};
}

RaggedMetadata::RaggedMetadata(const Geometry& geometry, const MetadataPolicy& policy,
                               EngineMemory& memory, CachingAllocator& temporaries)
    : DenseMetadata(geometry, memory), policy_(policy), temporaries_(temporaries) {
  const std::int64_t tokens = geometry.max_tokens();
  window_.persistent = allocate_ragged("window", tokens, geometry.window, memory);
  c128a_.persistent = allocate_ragged("c128a", tokens, geometry.c128a_width(), memory);
}

void RaggedMetadata::build(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  build_window(call, inputs, plan);
  flatten(call, "window", window_slots_, window_lens_, plan.decode_rows(), window_);
  if (!has_c128a()) return;
  build_c128a(call, inputs, plan);
  flatten(call, "c128a", c128a_slots_, c128a_lens_, plan.decode_rows(), c128a_);
}

void RaggedMetadata::flatten(const Caller& call, const std::string& name, const std::int32_t* dense,
                             const std::int32_t* lengths, std::int64_t rows, ListBuffers& to) {
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
                                                    .stream = nullptr,
                                                    .holes = PLUMB_HOLES_KEPT});
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

// Copies a list to the persistent buffers. An array that the policy (a fault) does not keep is
// copied to a temporary instead.
void RaggedMetadata::keep(const Caller& call, const std::string& name, const Ragged& built,
                          std::int64_t rows, const ListBuffers& to) {
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
           .stream = nullptr,
           .copied = PLUMB_COPIED_LENGTH});
  if (lost_indices != nullptr) temporaries_.free(lost_indices);
  if (lost_indptr != nullptr) temporaries_.free(lost_indptr);
}

}  // namespace plumb::device::decode
