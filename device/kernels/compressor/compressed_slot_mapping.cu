// SPDX-License-Identifier: Apache-2.0
//
// compressed_slot_mapping: thread t of the grid takes row t of the buffer. Legal launch: any grid
// with at least a thread per row.
#include <plumb/ops/compressor.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_compressed_slot_mapping_params;

PLUMB_DEVICE bool has_own_slot(const Params& p, std::int64_t token) {
  return p.own_slot == PLUMB_OWN_SLOT_IGNORED || p.slot_mapping[token] >= 0;
}

PLUMB_DEVICE std::int64_t compressed_slot(const Params& p, std::int64_t token) {
  const std::int64_t request =
      token < p.tokens ? request_of(p.query_start_loc, p.requests, token) : -1;
  if (request < 0) return kNoIndex;
  const std::int64_t position = position_of(p.query_start_loc, p.seq_lens, request, token);
  if (position < 0 || (position + 1) % p.ratio != 0) return kNoIndex;
  if (!has_own_slot(p, token)) return kNoIndex;
  const std::int32_t* blocks = p.block_table + request * p.block_table_row_stride;
  return wide_slot_of(blocks, p.page, position / p.ratio);
}

PLUMB_KERNEL void compressed_slot_mapping_kernel(Params p) {
  const std::int64_t row = std::int64_t{block_index_x()} * block_size() + thread_index();
  if (row < p.buffer_tokens) p.compressed_slots[row] = compressed_slot(p, row);
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.requests < 0 || p.buffer_tokens < p.tokens) return false;
  if (p.ratio < 1 || p.page < 1) return false;
  if (p.buffer_tokens == 0) return true;
  if (!p.compressed_slots || !p.query_start_loc) return false;
  if (p.requests > 0 && (!p.seq_lens || !p.block_table)) return false;
  return p.tokens == 0 || p.own_slot == PLUMB_OWN_SLOT_IGNORED || p.slot_mapping;
}

plumb_status launch_compressed_slot_mapping(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.buffer_tokens == 0) return PLUMB_OK;
  const int wave = stream_properties(p.stream).wave_size;
  const LaunchShape shape{(p.buffer_tokens + wave - 1) / wave, 1, wave, 0};
  return PLUMB_LAUNCH(compressed_slot_mapping_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry compressed_slot_mapping() {
  return {"compressed_slot_mapping", launch_compressed_slot_mapping, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
