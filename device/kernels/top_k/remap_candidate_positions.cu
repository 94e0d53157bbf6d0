// SPDX-License-Identifier: Apache-2.0
//
// remap_candidate_positions: positions of columns of the sparse logits. Wave r takes row r, as many
// columns at a time as it has lanes. Legal launch: grid_x = rows, one whole wave.
#include "device/kernels/top_k/candidate_window.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using RemapPositions = plumb_remap_candidate_positions_params;

PLUMB_KERNEL void remap_candidate_positions_kernel(RemapPositions p) {
  const std::int64_t row = block_index_x(), size = p.sparse_block_size;
  const std::int32_t* const columns = p.columns + row * p.columns_row_stride;
  const std::int32_t* const blocks = p.sparse_blocks + row * p.sparse_blocks_row_stride;
  std::int32_t* const positions = p.positions + row * p.positions_row_stride;
  const std::int64_t base = p.row_starts[row] / size;
  for (std::int64_t j = lane_index(); j < p.k; j += wave_size()) {
    const std::int64_t column = columns[j];
    std::int64_t position = -1;
    if (column >= 0 && column < p.row_blocks * size) {
      position = (blocks[column / size] - base) * size + column % size;
    }
    positions[j] = static_cast<std::int32_t>(position);
  }
}

bool is_legal_remap(const RemapPositions& p) {
  if (p.rows < 0 || p.k < 1 || p.row_blocks < 1 || p.sparse_block_size < 1) return false;
  if (p.columns_row_stride < p.k || p.positions_row_stride < p.k) return false;
  if (p.sparse_blocks_row_stride < p.row_blocks) return false;
  return p.rows == 0 || (p.columns && p.sparse_blocks && p.row_starts && p.positions);
}

plumb_status launch_remap_candidate_positions(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const RemapPositions*>(params);
  if (!is_legal_remap(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows == 0) return PLUMB_OK;
  const Properties& device = stream_properties(p.stream);
  if (p.rows > device.max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape one_wave{p.rows, 1, device.wave_size, 0};
  return PLUMB_LAUNCH(remap_candidate_positions_kernel, one_wave, p.stream, p);
}

}  // namespace

OpEntry remap_candidate_positions() {
  return {"remap_candidate_positions", launch_remap_candidate_positions, kCandidateNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
