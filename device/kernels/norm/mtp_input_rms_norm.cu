// SPDX-License-Identifier: Apache-2.0
//
// mtp_input_rms_norm: a team (row_norm.h) per token and role; the role is the grid's y. Role 0
// normalises the embedding, which counts as zero at position 0, whatever it holds. Role s + 1
// normalises slot s of the previous hidden states. Tokens are on the grid's x, whose limit is 2^31
// - 1; that of y is 65535.
#include <plumb/ops/norm.h>

#include "device/kernels/norm/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostRowThreads,
                          1) void mtp_input_rms_norm_kernel(plumb_mtp_input_rms_norm_params p) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const RowTeam team = row_team(block_index_x(), p.tokens, p.hidden);
  const std::int64_t token = team.row, slot = block_index_y() - 1;
  if (!team.has_work) return;
  const bool is_embedding = slot < 0;
  const bool keep = !is_embedding || p.positions[token] != 0;
  const std::int64_t first = (is_embedding ? token : token * p.hc_mult + slot) * p.hidden;
  std::uint16_t* const out = is_embedding ? p.out_embeds + token * p.out_embeds_row_stride
                                          : p.out_hidden + token * p.out_hidden_token_stride +
                                                slot * p.out_hidden_slot_stride;
  const PlainRow row{(is_embedding ? p.embeds : p.previous_hidden) + first, out, keep};
  const RowNorm norm{is_embedding ? p.enorm_weight : p.hnorm_weight, p.hidden, p.eps,
                     p.rounding == PLUMB_ROUND_TWICE};
  normalize_row<whole>(team, row, norm, wave_partials);
}

inline plumb_status launch_mtp_input_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_mtp_input_rms_norm_params*>(params);
  if (p.tokens < 0 || p.hidden < 1 || p.hc_mult < 1) return PLUMB_INVALID_ARGUMENT;
  if (p.out_embeds_row_stride < p.hidden || p.out_hidden_slot_stride < p.hidden ||
      p.out_hidden_token_stride < p.hidden) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.embeds || !p.previous_hidden || !p.positions || !p.out_embeds || !p.out_hidden ||
      !p.enorm_weight || !p.hnorm_weight) {
    return PLUMB_INVALID_ARGUMENT;
  }
  LaunchShape shape = row_shape(p.tokens, p.hidden, stream_properties(p.stream).wave_size);
  shape.grid_y = p.hc_mult + 1;
  if (has_whole_vectors(
          {p.hidden, p.out_embeds_row_stride, p.out_hidden_token_stride, p.out_hidden_slot_stride},
          p.embeds, p.previous_hidden, p.enorm_weight, p.hnorm_weight, p.out_embeds,
          p.out_hidden)) {
    return PLUMB_LAUNCH((mtp_input_rms_norm_kernel<true>), shape, p.stream, p);
  }
  return PLUMB_LAUNCH((mtp_input_rms_norm_kernel<false>), shape, p.stream, p);
}

OpEntry mtp_input_rms_norm() {
  return {"mtp_input_rms_norm", launch_mtp_input_rms_norm, row_norm_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
