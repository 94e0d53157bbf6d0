// SPDX-License-Identifier: Apache-2.0
//
// compute_global_topk_indices_and_lens: the slots of each token's top-k positions, as a dense
// table. Wave t takes token t, as many columns at a time as it has lanes. Slots stay in their
// columns, or are moved to the left in order. Legal launch: grid_x = tokens, one whole wave.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_compute_global_topk_indices_and_lens_params;

PLUMB_DEVICE bool has_request(const Params& p, std::int64_t token) {
  if (p.is_valid_token[token] == 0) return false;
  if (p.bounds == PLUMB_BOUNDS_UNCHECKED) return true;
  return p.token_to_req[token] >= 0 && p.token_to_req[token] < p.requests;
}

PLUMB_DEVICE bool has_slot(const Params& p, std::int64_t token, std::int64_t column) {
  if (column >= p.topk) return false;
  const std::int32_t position = p.topk_indices[token * p.topk_indices_row_stride + column];
  if (position < 0 || p.bounds == PLUMB_BOUNDS_UNCHECKED) return position >= 0;
  return position / p.block_size < p.blocks_per_request;
}

PLUMB_KERNEL void map_topk_dense_kernel(Params p) {
  const std::int64_t token = block_index_x();
  const std::int32_t* topk = p.topk_indices + token * p.topk_indices_row_stride;
  std::int32_t* out = p.global_indices + token * p.global_indices_row_stride;
  const bool left = p.compaction == PLUMB_COMPACTION_LEFT;
  std::int32_t found = 0, written = 0;
  if (has_request(p, token)) {
    const std::int32_t* blocks = p.block_table + p.token_to_req[token] * p.block_table_row_stride;
    for (std::int64_t base = 0; base < p.topk; base += wave_size()) {
      const std::int64_t column = base + lane_index();
      const std::int32_t own = has_slot(p, token, column) ? 1 : 0;
      const std::int32_t to_left = found + wave_prefix_sum(own) - own;
      if (own) out[left ? to_left : column] = slot_of(blocks, p.block_size, topk[column]);
      if (!own && !left && column < p.topk) out[column] = kNoIndex;
      found += wave_sum(own);
    }
    written = left ? found : static_cast<std::int32_t>(p.topk);
  }
  for (std::int64_t j = written + lane_index(); j < p.topk; j += wave_size()) out[j] = kNoIndex;
  if (lane_index() == 0) p.lens[token] = found;
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.topk < 1 || p.block_size < 1) return false;
  if (p.requests < 0 || p.blocks_per_request < 0) return false;
  if (p.global_indices_row_stride < p.topk) return false;
  if (p.tokens == 0) return true;
  return p.topk_indices && p.token_to_req && p.block_table && p.is_valid_token &&
         p.global_indices && p.lens;
}

plumb_status launch_compute_global_topk_dense(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  const Properties& device = stream_properties(p.stream);
  if (p.tokens > device.max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape one_wave{p.tokens, 1, device.wave_size, 0};
  return PLUMB_LAUNCH(map_topk_dense_kernel, one_wave, p.stream, p);
}

}  // namespace

OpEntry compute_global_topk_indices_and_lens() {
  return {"compute_global_topk_indices_and_lens", launch_compute_global_topk_dense, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
