// SPDX-License-Identifier: Apache-2.0
//
// mtp_shared_head_rms_norm: block x of the grid normalises token x. Everything contiguous.
#include "device/kernels/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_KERNEL void mtp_shared_head_rms_norm_kernel(plumb_mtp_shared_head_rms_norm_params p) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const std::int64_t first = block_index_x() * p.hidden;
  normalize_row(p.x + first, p.weight, p.out + first, p.hidden, p.eps, true, false, wave_partials);
}

inline plumb_status launch_mtp_shared_head_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_mtp_shared_head_rms_norm_params*>(params);
  if (p.tokens < 0 || p.hidden < 1) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.weight || !p.out) return PLUMB_INVALID_ARGUMENT;
  return PLUMB_LAUNCH(mtp_shared_head_rms_norm_kernel, (LaunchShape{p.tokens, 1, kRowNormBlock, 0}),
                      p.stream, p);
}

plumb_op_entry mtp_shared_head_rms_norm() {
  return {"mtp_shared_head_rms_norm", launch_mtp_shared_head_rms_norm, row_norm_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
