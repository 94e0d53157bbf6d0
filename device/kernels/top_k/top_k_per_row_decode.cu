// SPDX-License-Identifier: Apache-2.0
//
// top_k_per_row_decode: indices of the k largest logits of [0, end), next_n rows per request. Block
// b takes row b; its threads share the columns (top_k_select.h). Launch: top_k_launch.
#include <plumb/ops/top_k.h>

#include "device/kernels/top_k/top_k_select.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

// End of the logits that a row may use. It is 0 or less if a sequence is shorter than its next_n
// rows, as in a padded request of length 0.
PLUMB_DEVICE std::int64_t end_of(const plumb_top_k_per_row_decode_params& p, std::int64_t row) {
  const std::int64_t query = row % p.next_n;
  const std::int32_t* lengths = p.seq_lens + row / p.next_n * p.seq_lens_row_stride;
  if (p.seq_lens_dims == 2) return lengths[query];
  return lengths[0] - p.next_n + query + 1;
}

template <bool kept, class Logit>
PLUMB_KERNEL PLUMB_BOUNDS(1024,
                          1) void top_k_per_row_decode_kernel(plumb_top_k_per_row_decode_params p,
                                                              TopKRoom room) {
  PLUMB_SHARED(TopKShared, shared, 1);
  const std::int64_t row = block_index_x();
  const std::int64_t end = end_of(p, row);
  const std::int64_t length = end > 0 ? end : 0;
  const auto window = top_k_window<Logit>(p, row * p.logits_row_stride, length);
  select_top_k<kept>(window, static_cast<std::int32_t>(p.k), p.indices + row * p.indices_row_stride,
                     room, shared);
}

template <class Logit>
plumb_status launch_decode_rows(const plumb_top_k_per_row_decode_params& p) {
  const TopKLaunch launch = top_k_launch(p);
  if (launch.kept) {
    return PLUMB_LAUNCH((top_k_per_row_decode_kernel<true, Logit>), launch.shape, p.stream, p,
                        launch.room);
  }
  return PLUMB_LAUNCH((top_k_per_row_decode_kernel<false, Logit>), launch.shape, p.stream, p,
                      launch.room);
}

bool is_legal(const plumb_top_k_per_row_decode_params& p) {
  if (p.rows < 0 || p.columns < 0 || !legal_k(p) || !legal_format(p)) return false;
  if (p.next_n < 1 || p.rows % p.next_n != 0) return false;
  return p.seq_lens_dims == 1 || p.seq_lens_dims == 2;
}

plumb_status launch_top_k_per_row_decode(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_top_k_per_row_decode_params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.rows == 0) return PLUMB_OK;
  if (!p.logits || !p.seq_lens || !p.indices) return PLUMB_INVALID_ARGUMENT;
  if (p.rows > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  if (p.logits_format == PLUMB_LOGITS_BF16) return launch_decode_rows<std::uint16_t>(p);
  return launch_decode_rows<float>(p);
}

}  // namespace

OpEntry top_k_per_row_decode() {
  return {"top_k_per_row_decode", launch_top_k_per_row_decode, kTopKNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
