// SPDX-License-Identifier: Apache-2.0
//
// The gathering of index keys of device/kernels/placeholders/placeholder_kernels.h. Thread i of the
// grid owns byte i of the keys, in row order; that of a key's first byte also owns its scale.
// Launch: blocks of 256 in one dimension.
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kBlock = 256;

PLUMB_KERNEL void gather_index_keys_kernel(plumb_gather_index_keys_params p) {
  const std::int64_t i = std::int64_t{block_index_x()} * block_size() + thread_index();
  const std::int64_t key = i / p.dim, d = i % p.dim;
  if (key >= p.keys) return;
  for (std::int64_t request = 0; request < p.requests; ++request) {
    const std::int64_t state = key - p.starts[request];
    if (state < 0 || state >= p.lens[request]) continue;
    const std::int64_t page = p.cache.page, offset = state % page;
    const std::int64_t block = p.block_table[request * p.block_table_row_stride + state / page];
    const std::uint8_t* from = p.cache.data + block * p.cache.block_stride_bytes;
    p.k[i] = from[offset * p.dim + d];
    if (d == 0) p.k_scale[key] = reinterpret_cast<const float*>(from + page * p.dim)[offset];
  }
}

plumb_status launch_gather_index_keys(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_gather_index_keys_params*>(params);
  if (p.requests < 0 || p.keys < 0 || p.dim < 1) return PLUMB_INVALID_ARGUMENT;
  if (p.keys == 0) return PLUMB_OK;
  if (!p.cache.data || !p.block_table || !p.lens || !p.starts || !p.k || !p.k_scale) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const LaunchShape shape{(p.keys * p.dim + kBlock - 1) / kBlock, 1, kBlock, 0};
  return PLUMB_LAUNCH(gather_index_keys_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry gather_index_keys() {
  return {"gather_index_keys",
          launch_gather_index_keys,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_F32,
           .function_ulp = 0,
           .deterministic = 1,
           .stores_partials = 0}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
