// SPDX-License-Identifier: Apache-2.0
//
// cp_gather_indexer_k_quant_cache: gathers keys of several requests from the indexer's paged cache.
// Eight threads per key: thread t copies bytes t % 8, t % 8 + 8, ... of key t / 8 of the grid. The
// number of keys is in device memory, so the grid covers all rows of the output. Legal: any number
// of keys that fits the grid's x; any page; in the shuffled layout page 1 or a multiple of 16.
#include <plumb/ops/indexer.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_cp_gather_indexer_k_quant_cache_params;

constexpr int kKeyThreads = 8, kBlockKeys = 32, kTileBytes = 16;

// Byte offset, within a cache block, of code `column` of the key at `offset`.
PLUMB_DEVICE std::int64_t code_of(const Params& p, std::int64_t offset, std::int64_t column) {
  if (!p.shuffled || p.cache.page == 1) return offset * p.head_dim + column;
  const std::int64_t tile = offset / kTileBytes * p.head_dim + column / kTileBytes * kTileBytes;
  return tile * kTileBytes + offset % kTileBytes * kTileBytes + column % kTileBytes;
}

// Request of output row `key`. -1: the row is not written.
PLUMB_DEVICE std::int64_t request_of_key(const Params& p, std::int64_t key) {
  if (p.request_of_key == PLUMB_REQUEST_BY_CU_SEQ_LENS) {
    return request_of(p.cu_seq_lens, p.requests, key);
  }
  const std::int64_t request = p.token_to_seq[key];
  if (request < 0 || request >= p.requests) return -1;
  const bool inside = p.cu_seq_lens[request] <= key && key < p.cu_seq_lens[request + 1];
  return inside ? request : -1;
}

PLUMB_KERNEL void gather_keys_kernel(Params p) {
  const std::int64_t key =
      std::int64_t{block_index_x()} * kBlockKeys + thread_index() / kKeyThreads;
  if (key >= p.keys) return;
  const std::int64_t request = request_of_key(p, key);
  if (request < 0) return;
  const std::int64_t position = key - p.cu_seq_lens[request], page = p.cache.page;
  const std::int64_t offset = position % page;
  const std::int64_t block = p.block_table[request * p.block_table_row_stride + position / page];
  const std::uint8_t* from = p.cache.data + block * p.cache.block_stride_bytes;
  const int lane = thread_index() % kKeyThreads;
  for (std::int64_t i = lane; i < p.head_dim; i += kKeyThreads) {
    p.k[key * p.k_row_stride + i] = from[code_of(p, offset, i)];
  }
  const std::int64_t scale_bytes = 4 * (p.head_dim / p.quant_block_size);
  const std::uint8_t* scales = from + page * p.head_dim + offset * scale_bytes;
  for (std::int64_t i = lane; i < scale_bytes; i += kKeyThreads) {
    p.k_scale[key * p.k_scale_row_stride + i] = scales[i];
  }
}

bool has_legal_layout(const Params& p) {
  if (p.head_dim < 1 || p.quant_block_size < 1 || p.cache.page < 1) return false;
  if (p.head_dim % p.quant_block_size != 0) return false;
  const std::int64_t scale_bytes = 4 * (p.head_dim / p.quant_block_size);
  if (p.cache.block_stride_bytes < p.cache.page * (p.head_dim + scale_bytes)) return false;
  if (p.k_row_stride < p.head_dim || p.k_scale_row_stride < scale_bytes) return false;
  const bool tiled = p.cache.page % kTileBytes == 0 && p.head_dim % kTileBytes == 0;
  return !p.shuffled || p.cache.page == 1 || tiled;
}

plumb_status launch_gather_keys(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (p.requests < 0 || p.keys < 0 || p.pages < 0 || !has_legal_layout(p)) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.block_table_row_stride < p.pages) return PLUMB_INVALID_ARGUMENT;
  if (p.requests == 0 || p.keys == 0) return PLUMB_OK;
  const bool needs_requests = p.request_of_key == PLUMB_REQUEST_BY_TOKEN_TO_SEQ;
  if (!p.cache.data || !p.block_table || !p.cu_seq_lens || !p.k || !p.k_scale ||
      (needs_requests && !p.token_to_seq)) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const std::int64_t blocks = (p.keys + kBlockKeys - 1) / kBlockKeys;
  if (blocks > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape shape{blocks, 1, kBlockKeys * kKeyThreads, 0};
  return PLUMB_LAUNCH(gather_keys_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry cp_gather_indexer_k_quant_cache() {
  return {"cp_gather_indexer_k_quant_cache", launch_gather_keys, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
