// SPDX-License-Identifier: Apache-2.0
//
// build_ragged_indices_from_dense: rows of a dense table as one ragged list. One block writes
// indptr; then block r copies row r, its threads the entries. Legal launch: the first kernel one
// block of whole waves, the second grid_x = rows, any block.
#include <plumb/ops/metadata.h>

#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_build_ragged_indices_from_dense_params;

PLUMB_KERNEL void clamped_lengths_kernel(Params p) {
  const auto length_of = [&p](std::int64_t row) {
    const std::int32_t length = p.lengths[row];
    if (length < 0) return std::int32_t{0};
    return length < p.width ? length : static_cast<std::int32_t>(p.width);
  };
  write_indptr(p.rows, length_of, p.indptr);
}

PLUMB_KERNEL void copy_rows_kernel(Params p) {
  const std::int64_t row = block_index_x();
  const std::int64_t begin = p.indptr[row], count = p.indptr[row + 1] - begin;
  const std::int32_t* from = p.indices + row * p.indices_row_stride;
  for (std::int64_t j = thread_index(); j < count; j += block_size()) {
    const std::int32_t index = from[j];
    const bool passes = p.num_rows < 0 || (index >= 0 && index < p.num_rows);
    p.flat[begin + j] = passes ? index : kNoIndex;
  }
}

plumb_status launch_build_ragged_indices_from_dense(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (p.rows < 0 || p.width < 0 || p.num_rows < -1) return PLUMB_INVALID_ARGUMENT;
  if (!p.indptr || (p.rows > 0 && !p.lengths)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows > 0 && p.width > 0 && (!p.indices || !p.flat)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const plumb_status counted =
      PLUMB_LAUNCH(clamped_lengths_kernel, indptr_shape(p.rows, p.stream), p.stream, p);
  if (counted != PLUMB_OK || p.rows == 0 || p.width == 0) return counted;
  return PLUMB_LAUNCH(copy_rows_kernel, row_shape(p.rows, p.width, p.stream), p.stream, p);
}

}  // namespace

OpEntry build_ragged_indices_from_dense() {
  return {"build_ragged_indices_from_dense", launch_build_ragged_indices_from_dense,
          kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
