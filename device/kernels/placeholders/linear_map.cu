// SPDX-License-Identifier: Apache-2.0
//
// The linear map of device/kernels/placeholders/placeholder_kernels.h. Thread i of the grid owns
// output element i, in row order. Launch: blocks of 256 in one dimension.
#include "device/kernels/bf16.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "device/kernels/placeholders/scramble.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kTerms = 4;
constexpr int kBlock = 256;

PLUMB_DEVICE float load(const void* from, plumb_format format, std::int64_t i) {
  if (format == PLUMB_F32) return static_cast<const float*>(from)[i];
  return load_bf16(static_cast<const std::uint16_t*>(from)[i]);
}

PLUMB_KERNEL void linear_map_kernel(plumb_linear_map_params map) {
  const std::int64_t i = std::int64_t{block_index_x()} * block_size() + thread_index();
  if (i >= map.rows * map.out_columns) return;
  const std::int64_t row = i / map.out_columns, column = i % map.out_columns;
  float sum = 0;
  for (int term = 0; term < kTerms; ++term) {
    const std::uint64_t bits =
        scramble(map.seed + scramble(static_cast<std::uint64_t>(column * kTerms + term)));
    const auto from = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(map.in_columns));
    const float half = 0.5F * load(map.in, map.in_format, row * map.in_columns + from);
    sum += (bits >> 63) != 0 ? -half : half;
  }
  if (map.out_format == PLUMB_F32) {
    static_cast<float*>(map.out)[i] = sum;
  } else {
    static_cast<std::uint16_t*>(map.out)[i] = store_bf16(sum);
  }
}

plumb_status launch_linear_map(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& map = *static_cast<const plumb_linear_map_params*>(params);
  if (map.in == nullptr || map.out == nullptr || map.rows < 0 || map.in_columns < 1) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const std::int64_t elements = map.rows * map.out_columns;
  if (elements == 0) return PLUMB_OK;
  const LaunchShape shape{(elements + kBlock - 1) / kBlock, 1, kBlock, 0};
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
