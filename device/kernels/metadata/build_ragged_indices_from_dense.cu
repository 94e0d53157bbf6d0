// SPDX-License-Identifier: Apache-2.0
//
// build_ragged_indices_from_dense: turns the rows of a dense table into one ragged list. If holes
// are kept, one block writes indptr, then block r copies row r, its threads the entries. If holes
// are dropped, wave r first counts the valid entries of row r and later moves them to the left.
// Legal launch: one block of whole waves for indptr; grid_x = rows with any block, or with one
// whole wave.
#include <plumb/ops/metadata.h>

#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_build_ragged_indices_from_dense_params;

PLUMB_DEVICE std::int32_t clamped_length(const Params& p, std::int64_t row) {
  const std::int32_t length = p.lengths[row];
  if (length < 0) return 0;
  return length < p.width ? length : static_cast<std::int32_t>(p.width);
}

PLUMB_DEVICE const std::int32_t* row_of(const Params& p, std::int64_t row) {
  return p.indices + row * p.indices_row_stride;
}

PLUMB_DEVICE bool is_slot(const Params& p, std::int32_t index) {
  return index >= 0 && (p.num_rows < 0 || index < p.num_rows);
}

PLUMB_KERNEL void clamped_lengths_kernel(Params p) {
  write_indptr(p.rows, [&p](std::int64_t row) { return clamped_length(p, row); }, p.indptr);
}

PLUMB_KERNEL void copy_rows_kernel(Params p) {
  const std::int64_t row = block_index_x();
  const std::int64_t begin = p.indptr[row], count = p.indptr[row + 1] - begin;
  const std::int32_t* from = row_of(p, row);
  for (std::int64_t j = thread_index(); j < count; j += block_size()) {
    p.flat[begin + j] = p.num_rows < 0 || is_slot(p, from[j]) ? from[j] : kNoIndex;
  }
}

// Counts are stored where their sums will be: indptr[row + 1].
PLUMB_KERNEL void count_slots_kernel(Params p) {
  const std::int64_t row = block_index_x();
  const std::int32_t* from = row_of(p, row);
  const std::int32_t length = clamped_length(p, row);
  std::int32_t count = 0;
  for (std::int32_t j = lane_index(); j < length; j += wave_size()) count += is_slot(p, from[j]);
  count = wave_sum(count);
  if (lane_index() == 0) p.indptr[row + 1] = count;
}

PLUMB_KERNEL void slots_indptr_kernel(Params p) {
  write_indptr(p.rows, [&p](std::int64_t row) { return p.indptr[row + 1]; }, p.indptr);
}

PLUMB_KERNEL void move_slots_kernel(Params p) {
  const std::int64_t row = block_index_x();
  const std::int32_t* from = row_of(p, row);
  const std::int32_t length = clamped_length(p, row);
  std::int32_t end = p.indptr[row];
  for (std::int32_t base = 0; base < length; base += wave_size()) {
    const std::int32_t j = base + lane_index();
    const std::int32_t own = j < length && is_slot(p, from[j]) ? 1 : 0;
    const std::int32_t place = end + wave_prefix_sum(own) - own;
    if (own) p.flat[place] = from[j];
    end += wave_sum(own);
  }
}

plumb_status launch_without_holes(const Params& p) {
  const int wave = stream_properties(p.stream).wave_size;
  const LaunchShape one_wave{p.rows, 1, wave, 0};
  const bool any = p.rows > 0;
  plumb_status status = any ? PLUMB_LAUNCH(count_slots_kernel, one_wave, p.stream, p) : PLUMB_OK;
  if (status != PLUMB_OK) return status;
  status = PLUMB_LAUNCH(slots_indptr_kernel, indptr_shape(p.rows, p.stream), p.stream, p);
  if (status != PLUMB_OK || !any || p.width == 0) return status;
  return PLUMB_LAUNCH(move_slots_kernel, one_wave, p.stream, p);
}

plumb_status launch_with_holes(const Params& p) {
  const plumb_status counted =
      PLUMB_LAUNCH(clamped_lengths_kernel, indptr_shape(p.rows, p.stream), p.stream, p);
  if (counted != PLUMB_OK || p.rows == 0 || p.width == 0) return counted;
  return PLUMB_LAUNCH(copy_rows_kernel, row_shape(p.rows, p.width, p.stream), p.stream, p);
}

plumb_status launch_build_ragged_indices_from_dense(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (p.rows < 0 || p.width < 0 || p.num_rows < -1) return PLUMB_INVALID_ARGUMENT;
  if (!p.indptr || (p.rows > 0 && !p.lengths)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows > 0 && p.width > 0 && (!p.indices || !p.flat)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  return p.holes == PLUMB_HOLES_KEPT ? launch_with_holes(p) : launch_without_holes(p);
}

}  // namespace

OpEntry build_ragged_indices_from_dense() {
  return {"build_ragged_indices_from_dense", launch_build_ragged_indices_from_dense,
          kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
