// SPDX-License-Identifier: Apache-2.0
//
// q_kv_rms_norm: block (token, 0) normalises the token's row of q, block (token, 1) that of kv.
// Tokens lie on the grid's x, whose limit is 2^31 - 1; y ends at 65535. Rows may be strided.
#include "device/kernels/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_KERNEL void q_kv_rms_norm_kernel(plumb_q_kv_rms_norm_params p) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const std::int64_t row = block_index_x();
  if (block_index_y() == 0) {
    normalize_row(p.q + row * p.q_row_stride, p.q_weight, p.out_q + row * p.q_hidden, p.q_hidden,
                  p.eps, true, false, wave_partials);
  } else {
    normalize_row(p.kv + row * p.kv_row_stride, p.kv_weight, p.out_kv + row * p.kv_hidden,
                  p.kv_hidden, p.eps, true, false, wave_partials);
  }
}

inline plumb_status launch_q_kv_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_q_kv_rms_norm_params*>(params);
  if (p.tokens < 0 || p.q_hidden < 1 || p.kv_hidden < 1 || p.q_row_stride < p.q_hidden ||
      p.kv_row_stride < p.kv_hidden) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.q || !p.kv || !p.q_weight || !p.kv_weight || !p.out_q || !p.out_kv) {
    return PLUMB_INVALID_ARGUMENT;
  }
  return PLUMB_LAUNCH(q_kv_rms_norm_kernel, (LaunchShape{p.tokens, 2, kRowNormBlock, 0}), p.stream,
                      p);
}

plumb_op_entry q_kv_rms_norm() {
  return {"q_kv_rms_norm", launch_q_kv_rms_norm, row_norm_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
