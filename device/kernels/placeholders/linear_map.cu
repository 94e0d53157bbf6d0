// SPDX-License-Identifier: Apache-2.0
//
// linear_map of device/kernels/placeholders/placeholder_kernels.h. A thread computes one column of
// the output in kRows rows: the elements that it adds depend on the column alone. Launch: blocks of
// 256 columns by kRows rows.
#include "device/kernels/bf16.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "device/kernels/placeholders/scramble.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kTerms = 4;
constexpr int kBlock = 256, kRows = 16;

PLUMB_DEVICE float load(const void* from, plumb_format format, std::int64_t i) {
  if (format == PLUMB_F32) return static_cast<const float*>(from)[i];
  return load_bf16(static_cast<const std::uint16_t*>(from)[i]);
}

PLUMB_KERNEL void linear_map_kernel(plumb_linear_map_params map) {
  const std::int64_t column = std::int64_t{block_index_x()} * block_size() + thread_index();
  if (column >= map.out_columns) return;
  std::int64_t from[kTerms];
  float factor[kTerms];
  for (int term = 0; term < kTerms; ++term) {
    const std::uint64_t bits =
        scramble(map.seed + scramble(static_cast<std::uint64_t>(column * kTerms + term)));
    from[term] = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(map.in_columns));
    factor[term] = (bits >> 63) != 0 ? -0.5F : 0.5F;
  }
  const std::int64_t first = std::int64_t{block_index_y()} * kRows;
  for (std::int64_t row = first; row < first + kRows && row < map.rows; ++row) {
    float sum = 0;
    for (int term = 0; term < kTerms; ++term) {
      sum += factor[term] * load(map.in, map.in_format, row * map.in_columns + from[term]);
    }
    const std::int64_t i = row * map.out_columns + column;
    if (map.out_format == PLUMB_F32) {
      static_cast<float*>(map.out)[i] = sum;
    } else {
      static_cast<std::uint16_t*>(map.out)[i] = store_bf16(sum);
    }
  }
}

plumb_status launch_linear_map(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& map = *static_cast<const plumb_linear_map_params*>(params);
  if (map.in == nullptr || map.out == nullptr || map.rows < 0 || map.in_columns < 1) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (map.rows * map.out_columns == 0) return PLUMB_OK;
  const LaunchShape shape{(map.out_columns + kBlock - 1) / kBlock, (map.rows + kRows - 1) / kRows,
                          kBlock, 0};
  return PLUMB_LAUNCH(linear_map_kernel, shape, map.stream, map);
}

}  // namespace

OpEntry linear_map() {
  return {"linear_map",
          launch_linear_map,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_F32,
           .function_ulp = 0,
           .deterministic = 1,
           .stores_partials = 0}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
