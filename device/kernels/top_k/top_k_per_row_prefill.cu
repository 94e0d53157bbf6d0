// SPDX-License-Identifier: Apache-2.0
//
// top_k_per_row_prefill: row-local indices of the k largest logits of [row_starts, row_ends). Block
// b takes row b; its threads share the columns of the window (top_k_select.h). Launch:
// top_k_launch.
#include <plumb/ops/top_k.h>

#include "device/kernels/top_k/top_k_select.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

template <bool kept, class Logit>
PLUMB_KERNEL PLUMB_BOUNDS(1024,
                          1) void top_k_per_row_prefill_kernel(plumb_top_k_per_row_prefill_params p,
                                                               TopKRoom room) {
  PLUMB_SHARED(TopKShared, shared, 1);
  const std::int64_t row = block_index_x();
  const std::int64_t start = p.row_starts[row];
  const std::int64_t length = p.row_ends[row] - start;
  const std::int64_t first = row * p.logits_row_stride + start * p.logits_column_stride;
  const auto window = top_k_window<Logit>(p, first, length > 0 ? length : 0);
  select_top_k<kept>(window, static_cast<std::int32_t>(p.k), p.indices + row * p.indices_row_stride,
                     room, shared);
}

template <class Logit>
plumb_status launch_prefill_rows(const plumb_top_k_per_row_prefill_params& p) {
  const TopKLaunch launch = top_k_launch(p);
  if (launch.kept) {
    return PLUMB_LAUNCH((top_k_per_row_prefill_kernel<true, Logit>), launch.shape, p.stream, p,
                        launch.room);
  }
  return PLUMB_LAUNCH((top_k_per_row_prefill_kernel<false, Logit>), launch.shape, p.stream, p,
                      launch.room);
}

plumb_status launch_top_k_per_row_prefill(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_top_k_per_row_prefill_params*>(params);
  if (p.rows < 0 || p.columns < 0 || !legal_k(p) || !legal_format(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows == 0) return PLUMB_OK;
  if (!p.logits || !p.row_starts || !p.row_ends || !p.indices) return PLUMB_INVALID_ARGUMENT;
  if (p.rows > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  if (p.logits_format == PLUMB_LOGITS_BF16) return launch_prefill_rows<std::uint16_t>(p);
  return launch_prefill_rows<float>(p);
}

}  // namespace

OpEntry top_k_per_row_prefill() {
  return {"top_k_per_row_prefill", launch_top_k_per_row_prefill, kTopKNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
