// SPDX-License-Identifier: Apache-2.0
//
// transform_index_page_table: the slots of each token's top-k indices, by a page table. Wave t
// takes token t, as many columns at a time as it has lanes. Legal launch: grid_x = tokens, one
// whole wave.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_transform_index_page_table_params;

PLUMB_KERNEL void transform_index_kernel(Params p) {
  const std::int64_t token = block_index_x();
  const std::int64_t row = p.requests > 0 ? request_of(p.cu_seqlens_q, p.requests, token) : token;
  const std::int32_t* pages = p.page_table + row * p.page_table_row_stride;
  const std::int32_t* selected = p.topk_indices + token * p.topk_indices_row_stride;
  std::int32_t* slots = p.page_indices + token * p.page_indices_row_stride;
  // Up to topk candidates are all selected, in order. Nothing has written their indices.
  const std::int64_t length = p.seq_lens != nullptr ? p.seq_lens[token] : p.topk + 1;
  const bool all = length <= p.topk;
  for (std::int64_t j = lane_index(); j < p.topk; j += wave_size()) {
    std::int64_t index = kNoIndex;
    if (row >= 0) index = all ? (j < length ? j : kNoIndex) : selected[j];
    slots[j] = index < 0 ? kNoIndex : slot_of(pages, p.page_size, index);
    if (p.raw_indices == nullptr) continue;
    p.raw_indices[token * p.raw_indices_row_stride + j] = static_cast<std::int32_t>(index);
  }
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.topk < 1 || p.requests < 0) return false;
  if (p.page_size < 1 || (p.page_size & (p.page_size - 1)) != 0) return false;
  if (p.topk_indices_row_stride < p.topk || p.page_indices_row_stride < p.topk) return false;
  if (p.raw_indices != nullptr && p.raw_indices_row_stride < p.topk) return false;
  if ((p.requests > 0) != (p.cu_seqlens_q != nullptr)) return false;
  return p.tokens == 0 || (p.topk_indices && p.page_table && p.page_indices);
}

plumb_status launch_transform_index_page_table(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  const Properties& device = stream_properties(p.stream);
  if (p.tokens > device.max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape one_wave{p.tokens, 1, device.wave_size, 0};
  return PLUMB_LAUNCH(transform_index_kernel, one_wave, p.stream, p);
}

}  // namespace

OpEntry transform_index_page_table() {
  return {"transform_index_page_table", launch_transform_index_page_table, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
