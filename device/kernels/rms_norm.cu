// SPDX-License-Identifier: Apache-2.0
//
// rms_norm: block x of the grid normalises row x. Rows may be strided, the output is contiguous.
// Legal: any tokens that fit the grid's x, any hidden >= 1, block of 256.
#include "device/kernels/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_KERNEL void rms_norm_kernel(plumb_rms_norm_params p) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const std::int64_t row = block_index_x();
  normalize_row(p.x + row * p.x_row_stride, p.weight, p.out + row * p.hidden, p.hidden, p.eps, true,
                p.rounding == PLUMB_ROUND_TWICE, wave_partials);
}

inline plumb_status launch_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_rms_norm_params*>(params);
  if (p.tokens < 0 || p.hidden < 1 || p.x_row_stride < p.hidden) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.out) return PLUMB_INVALID_ARGUMENT;
  return PLUMB_LAUNCH(rms_norm_kernel, (LaunchShape{p.tokens, 1, kRowNormBlock, 0}), p.stream, p);
}

plumb_op_entry rms_norm() { return {"rms_norm", launch_rms_norm, row_norm_numerics()}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
