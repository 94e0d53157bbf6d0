// SPDX-License-Identifier: Apache-2.0
//
// q_kv_rms_norm: teams (row_norm.h) for rows of q, and in the blocks behind them teams for rows of
// kv. All are on the grid's x, whose limit is 2^31 - 1; that of y is 65535. Rows may be strided.
#include <plumb/ops/norm.h>

#include "device/kernels/norm/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostRowThreads,
                          1) void q_kv_rms_norm_kernel(plumb_q_kv_rms_norm_params p,
                                                       std::int64_t q_blocks) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const bool is_q = block_index_x() < q_blocks;
  const std::int64_t hidden = is_q ? p.q_hidden : p.kv_hidden;
  const RowTeam team = row_team(block_index_x() - (is_q ? 0 : q_blocks), p.tokens, hidden);
  if (!team.has_work) return;
  const std::int64_t t = team.row;
  const PlainRow row =
      is_q ? PlainRow{p.q + t * p.q_row_stride, p.out_q + t * p.out_q_row_stride}
           : PlainRow{p.kv + t * p.kv_row_stride, p.out_kv + t * p.out_kv_row_stride};
  const RowNorm norm{is_q ? p.q_weight : p.kv_weight, hidden, p.eps,
                     p.rounding == PLUMB_ROUND_TWICE};
  normalize_row<whole>(team, row, norm, wave_partials);
}

inline plumb_status launch_q_kv_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_q_kv_rms_norm_params*>(params);
  if (p.tokens < 0 || p.q_hidden < 1 || p.kv_hidden < 1 || p.q_row_stride < p.q_hidden ||
      p.kv_row_stride < p.kv_hidden || p.out_q_row_stride < p.q_hidden ||
      p.out_kv_row_stride < p.kv_hidden) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.q || !p.kv || !p.q_weight || !p.kv_weight || !p.out_q || !p.out_kv) {
    return PLUMB_INVALID_ARGUMENT;
  }
  // A block is as wide as the wider team. If both teams are single waves, a block has several.
  const int wave = stream_properties(p.stream).wave_size;
  const int q_threads = row_threads(p.q_hidden, wave), kv_threads = row_threads(p.kv_hidden, wave);
  const int widest = q_threads > kv_threads ? q_threads : kv_threads;
  const int block = widest > wave ? widest : kSmallTeams * wave;
  const std::int64_t q_blocks = row_blocks(p.tokens, p.q_hidden, wave, block);
  const std::int64_t blocks = q_blocks + row_blocks(p.tokens, p.kv_hidden, wave, block);
  const LaunchShape shape{blocks, 1, block, 0};
  if (has_whole_vectors({p.q_hidden, p.q_row_stride, p.out_q_row_stride}, p.q, p.q_weight,
                        p.out_q) &&
      has_whole_vectors({p.kv_hidden, p.kv_row_stride, p.out_kv_row_stride}, p.kv, p.kv_weight,
                        p.out_kv)) {
    return PLUMB_LAUNCH((q_kv_rms_norm_kernel<true>), shape, p.stream, p, q_blocks);
  }
  return PLUMB_LAUNCH((q_kv_rms_norm_kernel<false>), shape, p.stream, p, q_blocks);
}

OpEntry q_kv_rms_norm() { return {"q_kv_rms_norm", launch_q_kv_rms_norm, row_norm_numerics()}; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
