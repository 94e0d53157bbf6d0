// SPDX-License-Identifier: Apache-2.0
//
// The rows of device/decode/stand_ins.h. Thread i of the grid owns output element i, in row order.
// Launch: blocks of 256 in one dimension.
#include "device/decode/scramble.h"
#include "device/decode/stand_ins.h"
#include "device/kernels/bf16.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kBlock = 256;

PLUMB_KERNEL void seeded_rows_kernel(plumb_seeded_rows_params p) {
  const std::int64_t i = std::int64_t{block_index_x()} * block_size() + thread_index();
  if (i >= p.rows * p.columns) return;
  const auto key = static_cast<std::uint64_t>(p.keys[i / p.columns]);
  const auto column = static_cast<std::uint64_t>(i % p.columns);
  const std::uint64_t bits = scramble(p.seed + scramble(key + scramble(column + 1)));
  std::int32_t sum = -131070;  // the mean
  for (int field = 0; field < 4; ++field) {
    sum += static_cast<std::int32_t>((bits >> (16 * field)) & 0xffff);
  }
  p.out[i] = store_bf16(static_cast<float>(sum) * 0x1p-15F);
}

plumb_status launch_seeded_rows(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_seeded_rows_params*>(params);
  if (p.keys == nullptr || p.out == nullptr || p.rows < 0 || p.columns < 1) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const std::int64_t elements = p.rows * p.columns;
  if (elements == 0) return PLUMB_OK;
  const LaunchShape shape{(elements + kBlock - 1) / kBlock, 1, kBlock, 0};
  return PLUMB_LAUNCH(seeded_rows_kernel, shape, p.stream, p);
}

}  // namespace

plumb_op_entry seeded_rows() {
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
