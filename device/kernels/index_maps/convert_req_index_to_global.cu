// SPDX-License-Identifier: Apache-2.0
//
// convert_req_index_to_global: the rows of the cache, or of the prefill workspace, for the
// positions that V3.2's indexer chose. Wave t takes token t, as many columns at a time as it has
// lanes. Legal launch: grid_x = tokens, one whole wave.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_convert_req_index_to_global_params;

// A token: its request's row of the block table, and the first row of its workspace. -1: it reads
// the cache.
struct Source {
  const std::int32_t* blocks = nullptr;
  std::int64_t workspace = -1;
};

PLUMB_DEVICE Source source_of(const Params& p, std::int64_t token) {
  Source source;
  source.blocks = p.block_table + p.req_id[token] * p.block_table_row_stride;
  const std::int32_t prefill = p.prefills > 0 ? p.prefill_request_id[token] : -1;
  if (prefill >= 0) source.workspace = p.workspace_starts[prefill];
  return source;
}

PLUMB_DEVICE std::int32_t row_of(const Params& p, const Source& source, std::int64_t position) {
  if (position < 0) return kNoIndex;
  if (position / p.dcp_interleave % p.dcp_size != p.dcp_rank) return kNoIndex;
  const std::int64_t local =
      position / (p.dcp_interleave * p.dcp_size) * p.dcp_interleave + position % p.dcp_interleave;
  if (local / p.block_size >= p.blocks_per_request) return kNoIndex;
  if (source.workspace >= 0) return static_cast<std::int32_t>(source.workspace + position);
  const std::int64_t block = source.blocks[local / p.block_size];
  return static_cast<std::int32_t>(block * p.block_stride_rows + local % p.block_size);
}

// Entries of any order are found from the last columns to the first ones.
PLUMB_KERNEL void convert_req_index_kernel(Params p) {
  const std::int64_t token = block_index_x();
  const std::int32_t* positions = p.token_indices + token * p.token_indices_row_stride;
  std::int32_t* out = p.global_indices + token * p.global_indices_row_stride;
  const Source source = source_of(p, token);
  const bool in_place = p.compaction == PLUMB_VALID_IN_PLACE;
  const std::int64_t rounds = (p.topk + wave_size() - 1) / wave_size();
  std::int32_t found = 0;
  for (std::int64_t i = 0; i < rounds; ++i) {
    const std::int64_t round = p.compaction == PLUMB_VALID_ANY_ORDER ? rounds - 1 - i : i;
    const std::int64_t column = round * wave_size() + lane_index();
    const bool inside = column < p.topk;
    const std::int32_t row = inside ? row_of(p, source, positions[column]) : kNoIndex;
    const std::int32_t own = row >= 0 ? 1 : 0;
    const std::int32_t in_front = found + wave_prefix_sum(own) - own;
    if (in_place && inside) out[column] = row;
    if (!in_place && own) out[in_front] = row;
    found += wave_sum(own);
  }
  const std::int64_t written = in_place ? p.topk : found;
  for (std::int64_t j = written + lane_index(); j < p.topk; j += wave_size()) out[j] = kNoIndex;
  if (p.valid_counts != nullptr && lane_index() == 0) p.valid_counts[token] = found;
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.topk < 1 || p.blocks_per_request < 0 || p.prefills < 0) return false;
  if (p.block_size < 1 || p.block_stride_rows < p.block_size) return false;
  if (p.token_indices_row_stride < p.topk || p.global_indices_row_stride < p.topk) return false;
  if (p.dcp_size < 1 || p.dcp_rank < 0 || p.dcp_rank >= p.dcp_size) return false;
  if (p.dcp_interleave < 1 || p.block_size % p.dcp_interleave != 0) return false;
  if (p.prefills > 0 && (p.dcp_size > 1 || !p.prefill_request_id || !p.workspace_starts)) {
    return false;
  }
  return p.tokens == 0 || (p.req_id && p.block_table && p.token_indices && p.global_indices);
}

plumb_status launch_convert_req_index_to_global(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  const Properties& device = stream_properties(p.stream);
  if (p.tokens > device.max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape one_wave{p.tokens, 1, device.wave_size, 0};
  return PLUMB_LAUNCH(convert_req_index_kernel, one_wave, p.stream, p);
}

}  // namespace

OpEntry convert_req_index_to_global() {
  return {"convert_req_index_to_global", launch_convert_req_index_to_global, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
