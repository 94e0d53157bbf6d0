// SPDX-License-Identifier: Apache-2.0
//
// seeded_rows of device/kernels/placeholders/placeholder_kernels.h. Thread i of the grid computes
// kEach output elements from i * kEach on, in row order. Launch: blocks of 256 in one dimension.
#include "device/kernels/bf16.h"
#include "device/kernels/placeholders/placeholder_kernels.h"
#include "device/kernels/placeholders/scramble.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kBlock = 256, kEach = 8;

PLUMB_DEVICE std::uint16_t element(std::uint64_t seed, std::int64_t key, std::int64_t column) {
  const std::uint64_t place = scramble(static_cast<std::uint64_t>(column) + 1);
  const std::uint64_t bits = scramble(seed + scramble(static_cast<std::uint64_t>(key) + place));
  std::int32_t sum = -131070;  // minus the mean of the sum
  for (int field = 0; field < 4; ++field) {
    sum += static_cast<std::int32_t>((bits >> (16 * field)) & 0xffff);
  }
  return store_bf16(static_cast<float>(sum) * 0x1p-15F);
}

PLUMB_KERNEL void seeded_rows_kernel(plumb_seeded_rows_params p) {
  const std::int64_t thread = std::int64_t{block_index_x()} * block_size() + thread_index();
  const std::int64_t elements = p.rows * p.columns, first = thread * kEach;
  std::int64_t row = first / p.columns, column = first % p.columns;
  for (std::int64_t i = first; i < first + kEach && i < elements; ++i, ++column) {
    if (column == p.columns) {
      column = 0;
      ++row;
    }
    p.out[i] = element(p.seed, p.keys[row], column);
  }
}

plumb_status launch_seeded_rows(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_seeded_rows_params*>(params);
  if (p.keys == nullptr || p.out == nullptr || p.rows < 0 || p.columns < 1) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const std::int64_t elements = p.rows * p.columns;
  if (elements == 0) return PLUMB_OK;
  constexpr int kElements = kBlock * kEach;
  const LaunchShape shape{(elements + kElements - 1) / kElements, 1, kBlock, 0};
  return PLUMB_LAUNCH(seeded_rows_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry seeded_rows() {
  return {"seeded_rows",
          launch_seeded_rows,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_F32,
           .function_ulp = 0,
           .deterministic = 1,
           .stores_partials = 0}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
