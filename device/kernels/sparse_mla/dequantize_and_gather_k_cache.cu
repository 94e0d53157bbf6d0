// SPDX-License-Identifier: Apache-2.0
//
// Gathers tokens of a paged V4 cache into a bf16 workspace.
//
//   gather_kernel   grid (requests, row tiles), 128 threads: thread t takes dimensions
//                   64 (t % 8) .. + 63 of token t / 8 of each of its tiles. The number of
//                   tokens is in device memory, so the grid follows from the shapes alone.
//
// Legal for any number of requests and rows, any page; wave 32 or 64.
#include <cstdint>

#include "device/kernels/sparse_mla/mla_cache.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kGatherThreads = 128, kGatherTile = 16;
constexpr int kTokenThreads = kGatherThreads / kGatherTile;
constexpr std::int64_t kMostTiles = 64;  // most tiles of the grid for one request

PLUMB_KERNEL void gather_kernel(plumb_dequantize_and_gather_k_cache_params p) {
  const std::int64_t request = block_index_x();
  const int group = thread_index() % kTokenThreads;
  const std::int64_t seq_len = p.seq_lens[request];
  const std::int64_t gather_len = p.gather_lens != nullptr ? p.gather_lens[request] : seq_len;
  const std::int32_t* blocks = p.block_table + request * p.block_table_row_stride;
  std::uint16_t* out = p.out + request * p.out_request_stride + group * kGroup;
  const std::int64_t first = block_index_y() * kGatherTile + thread_index() / kTokenThreads;
  for (std::int64_t i = first; i < gather_len; i += grid_size_y() * kGatherTile) {
    const std::int64_t position = seq_len - gather_len + i;
    const TokenAddress token =
        locate(p.cache, blocks[position / p.cache.page], position % p.cache.page);
    load_group(p.cache, token, group, p.cache.dialect, out + (p.offset + i) * p.out_row_stride);
  }
}

// ---- host ----

namespace {

bool legal(const plumb_dequantize_and_gather_k_cache_params& p) {
  if (p.requests < 0 || p.rows < 1 || p.pages < 1 || p.offset < 0) return false;
  if (p.offset > p.rows || p.block_table_row_stride < p.pages) return false;
  if (p.out_row_stride < kValueDim || p.out_request_stride < p.rows * p.out_row_stride)
    return false;
  if (p.cache.data == nullptr || p.block_table == nullptr) return false;
  if (p.seq_lens == nullptr || p.out == nullptr) return false;
  return p.cache.layout == PLUMB_MLA_V4 && legal_cache(p.cache);
}

plumb_status launch_gather(const void* untyped) {
  const auto& p = *static_cast<const plumb_dequantize_and_gather_k_cache_params*>(untyped);
  if (!legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.requests == 0 || p.offset == p.rows) return PLUMB_OK;
  if (p.requests > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const std::int64_t tiles = (p.rows - p.offset + kGatherTile - 1) / kGatherTile;
  const LaunchShape shape{p.requests, tiles < kMostTiles ? tiles : kMostTiles, kGatherThreads, 0};
  return PLUMB_LAUNCH(gather_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry dequantize_and_gather_k_cache() {
  return {"dequantize_and_gather_k_cache",
          &launch_gather,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_F32,
           .function_ulp = 0,
           .deterministic = 1,
           .stores_partials = 0}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
