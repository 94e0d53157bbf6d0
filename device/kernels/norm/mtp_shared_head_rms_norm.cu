// SPDX-License-Identifier: Apache-2.0
//
// mtp_shared_head_rms_norm: a team per token (row_norm.h). Rows of `out` may be strided.
#include <plumb/ops/norm.h>

#include "device/kernels/norm/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostRowThreads, 1) void mtp_shared_head_rms_norm_kernel(
    plumb_mtp_shared_head_rms_norm_params p) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const RowTeam team = row_team(block_index_x(), p.tokens, p.hidden);
  if (!team.has_work) return;
  const PlainRow row{p.x + team.row * p.hidden, p.out + team.row * p.out_row_stride};
  const RowNorm norm{p.weight, p.hidden, p.eps, p.rounding == PLUMB_ROUND_TWICE};
  normalize_row<whole>(team, row, norm, wave_partials);
}

inline plumb_status launch_mtp_shared_head_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_mtp_shared_head_rms_norm_params*>(params);
  if (p.tokens < 0 || p.hidden < 1 || p.out_row_stride < p.hidden) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.weight || !p.out) return PLUMB_INVALID_ARGUMENT;
  const int wave = stream_properties(p.stream).wave_size;
  const LaunchShape shape = row_shape(p.tokens, p.hidden, wave);
  if (has_whole_vectors({p.hidden, p.out_row_stride}, p.x, p.weight, p.out)) {
    return PLUMB_LAUNCH((mtp_shared_head_rms_norm_kernel<true>), shape, p.stream, p);
  }
  return PLUMB_LAUNCH((mtp_shared_head_rms_norm_kernel<false>), shape, p.stream, p);
}

OpEntry mtp_shared_head_rms_norm() {
  return {"mtp_shared_head_rms_norm", launch_mtp_shared_head_rms_norm, row_norm_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
