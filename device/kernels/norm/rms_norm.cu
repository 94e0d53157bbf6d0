// SPDX-License-Identifier: Apache-2.0
//
// rms_norm: a team per row (row_norm.h). Rows may be strided. Legal: any tokens that fit the grid's
// x, any hidden >= 1.
#include <plumb/ops/norm.h>

#include "device/kernels/norm/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostRowThreads, 1) void rms_norm_kernel(plumb_rms_norm_params p) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const RowTeam team = row_team(block_index_x(), p.tokens, p.hidden);
  if (!team.has_work) return;
  const PlainRow row{p.x + team.row * p.x_row_stride, p.out + team.row * p.out_row_stride};
  const RowNorm norm{p.weight, p.hidden, p.eps, p.rounding == PLUMB_ROUND_TWICE};
  normalize_row<whole>(team, row, norm, wave_partials);
}

inline plumb_status launch_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_rms_norm_params*>(params);
  if (p.tokens < 0 || p.hidden < 1 || p.x_row_stride < p.hidden || p.out_row_stride < p.hidden) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.out) return PLUMB_INVALID_ARGUMENT;
  const int wave = stream_properties(p.stream).wave_size;
  const LaunchShape shape = row_shape(p.tokens, p.hidden, wave);
  if (has_whole_vectors({p.hidden, p.x_row_stride, p.out_row_stride}, p.x, p.weight, p.out)) {
    return PLUMB_LAUNCH((rms_norm_kernel<true>), shape, p.stream, p);
  }
  return PLUMB_LAUNCH((rms_norm_kernel<false>), shape, p.stream, p);
}

OpEntry rms_norm() { return {"rms_norm", launch_rms_norm, row_norm_numerics()}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
