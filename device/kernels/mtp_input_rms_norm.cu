// SPDX-License-Identifier: Apache-2.0
//
// mtp_input_rms_norm: block (token, role). Role 0 normalises the embedding, which counts as zero at
// position 0 whatever it holds; role s + 1 normalises slot s of the previous hidden states.
// Tokens lie on the grid's x, whose limit is 2^31 - 1; y ends at 65535.
#include "device/kernels/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_KERNEL void mtp_input_rms_norm_kernel(plumb_mtp_input_rms_norm_params p) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const std::int64_t token = block_index_x();
  const std::int64_t slot = block_index_y() - 1;
  if (slot < 0) {
    const bool keep = p.positions[token] != 0;
    normalize_row(p.embeds + token * p.hidden, p.enorm_weight, p.out_embeds + token * p.hidden,
                  p.hidden, p.eps, keep, false, wave_partials);
  } else {
    const std::int64_t row = (token * p.hc_mult + slot) * p.hidden;
    normalize_row(p.previous_hidden + row, p.hnorm_weight, p.out_hidden + row, p.hidden, p.eps,
                  true, false, wave_partials);
  }
}

inline plumb_status launch_mtp_input_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_mtp_input_rms_norm_params*>(params);
  if (p.tokens < 0 || p.hidden < 1 || p.hc_mult < 1) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.embeds || !p.previous_hidden || !p.positions || !p.out_embeds || !p.out_hidden ||
      !p.enorm_weight || !p.hnorm_weight) {
    return PLUMB_INVALID_ARGUMENT;
  }
  return PLUMB_LAUNCH(mtp_input_rms_norm_kernel,
                      (LaunchShape{p.tokens, p.hc_mult + 1, kRowNormBlock, 0}), p.stream, p);
}

plumb_op_entry mtp_input_rms_norm() {
  return {"mtp_input_rms_norm", launch_mtp_input_rms_norm, row_norm_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
