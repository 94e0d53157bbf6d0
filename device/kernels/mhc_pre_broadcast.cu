// SPDX-License-Identifier: Apache-2.0
//
// mhc_pre_broadcast: the mixing of a sublayer (device/kernels/mhc_mixing.h) from one stream that
// stands for four, which are also written out. K is `hidden`.
#include "device/kernels/mhc_mixing.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

PLUMB_KERNEL void mhc_broadcast_partials(Mixing p) {
  PLUMB_SHARED(float, weights, kStaged);
  mix_partials(p, StoredStreams{p}, weights);
}

PLUMB_KERNEL void mhc_broadcast_outputs(Mixing p, std::uint16_t* residual_out) {
  PLUMB_SHARED(float, logits, kMixes);
  PLUMB_SHARED(float, pre, kStreams);
  PLUMB_SHARED(float, per_wave, kMostWaves);
  const std::int64_t token = block_index_x();
  for (std::int64_t h = thread_index(); h < p.hidden; h += block_size()) {
    const std::uint16_t value = p.streams[token * p.token_stride + h];
    for (int n = 0; n < kStreams; ++n) {
      residual_out[(token * kStreams + n) * p.hidden + h] = value;
    }
  }
  mix_outputs(p, logits, pre, per_wave);
}

plumb_status launch_mhc_pre_broadcast(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_mhc_pre_broadcast_params*>(params);
  Mixing mixing = mixing_of(p, p.hidden);
  mixing.streams = p.residual;
  mixing.token_stride = p.residual_token_stride;
  mixing.slot_stride = 0;
  if (!is_legal(mixing)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!is_complete(mixing) || !p.residual_out) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  if (!fits_grid(mixing, device)) return PLUMB_UNSUPPORTED;
  const plumb_status status =
      PLUMB_LAUNCH(mhc_broadcast_partials, partials_shape(mixing, device), p.stream, mixing);
  if (status != PLUMB_OK) return status;
  const LaunchShape outputs = token_shape(p.tokens, p.hidden, device.wave_size);
  return PLUMB_LAUNCH(mhc_broadcast_outputs, outputs, p.stream, mixing, p.residual_out);
}

}  // namespace

plumb_op_entry mhc_pre_broadcast() {
  return {"mhc_pre_broadcast", launch_mhc_pre_broadcast, mixing_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
