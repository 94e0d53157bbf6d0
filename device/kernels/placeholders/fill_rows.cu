// SPDX-License-Identifier: Apache-2.0
//
// fill_rows of device/kernels/placeholders/placeholder_kernels.h. Thread i of the grid writes bytes
// 16 i .. 16 i + 15. Launch: blocks of 256 in one dimension.
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kBlock = 256, kBytes = 16;

PLUMB_KERNEL void fill_rows_kernel(plumb_fill_rows_params p) {
  const std::int64_t i = std::int64_t{block_index_x()} * block_size() + thread_index();
  const std::int64_t all = p.rows * p.row_bytes,
                     end = (i + 1) * kBytes < all ? (i + 1) * kBytes : all;
  for (std::int64_t at = i * kBytes; at < end; ++at) p.out[at] = p.value;
}

plumb_status launch_fill_rows(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_fill_rows_params*>(params);
  if (p.out == nullptr || p.rows < 0 || p.row_bytes < 1) return PLUMB_INVALID_ARGUMENT;
  const std::int64_t bytes = p.rows * p.row_bytes;
  if (bytes == 0) return PLUMB_OK;
  const LaunchShape shape{(bytes + kBlock * kBytes - 1) / (kBlock * kBytes), 1, kBlock, 0};
  return PLUMB_LAUNCH(fill_rows_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry fill_rows() {
  return {"fill_rows",
          launch_fill_rows,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_F32,
           .function_ulp = 0,
           .deterministic = 1,
           .stores_partials = 0}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
