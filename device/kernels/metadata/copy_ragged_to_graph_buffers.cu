// SPDX-License-Identifier: Apache-2.0
//
// copy_ragged_to_graph_buffers: copies a ragged list into persistent buffers. The grid follows from
// the capacity, because the host does not know the number of entries. Its threads share the
// elements of indices and of indptr, in strides of the grid. Legal launch: any grid, any block.
#include <plumb/ops/metadata.h>

#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_copy_ragged_to_graph_buffers_params;

PLUMB_KERNEL void copy_ragged_kernel(Params p) {
  const std::int64_t thread = std::int64_t{block_index_x()} * block_size() + thread_index();
  const std::int64_t threads = std::int64_t{grid_size_x()} * block_size();
  const bool all = p.copied == PLUMB_COPIED_CAPACITY;
  const std::int64_t entries = all ? p.rows * p.max_per_row : p.indptr[p.rows];
  for (std::int64_t i = thread; i < entries; i += threads) p.indices_buffer[i] = p.indices[i];
  for (std::int64_t i = thread; i <= p.rows; i += threads) p.indptr_buffer[i] = p.indptr[i];
}

plumb_status launch_copy_ragged_to_graph_buffers(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (p.rows < 0 || p.max_per_row < 0) return PLUMB_INVALID_ARGUMENT;
  if (!p.indptr || !p.indptr_buffer) return PLUMB_INVALID_ARGUMENT;
  const bool has_entries = p.rows > 0 && p.max_per_row > 0;
  if (has_entries && (!p.indices || !p.indices_buffer)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const std::int64_t blocks = p.rows > 0 ? p.rows : 1;
  return PLUMB_LAUNCH(copy_ragged_kernel, row_shape(blocks, p.max_per_row, p.stream), p.stream, p);
}

}  // namespace

OpEntry copy_ragged_to_graph_buffers() {
  return {"copy_ragged_to_graph_buffers", launch_copy_ragged_to_graph_buffers, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
