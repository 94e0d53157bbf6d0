// SPDX-License-Identifier: Apache-2.0
//
// mhc_pre: the mixing in front of a sublayer (device/kernels/hyper_connection/mhc_mixing.h). It
// reads four streams as they are stored.
#include "device/kernels/hyper_connection/mhc_mixing.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

PLUMB_KERNEL void mhc_pre_partials(Mixing p) {
  PLUMB_SHARED(float, weights, kStaged);
  mix_partials(p, StoredStreams{p}, weights);
}

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostTokenThreads, 2) void mhc_pre_outputs(Mixing p) {
  PLUMB_SHARED(float, pre, kStreams);
  PLUMB_SHARED(float, per_wave, kMostWaves);
  mix_outputs<whole>(p, pre, per_wave);
}

Mixing pre_mixing(const plumb_mhc_pre_params& p) {
  Mixing mixing = mixing_of(p, kStreams * p.hidden);
  mixing.streams = p.residual;
  mixing.token_stride = p.residual_token_stride;
  mixing.slot_stride = p.residual_slot_stride;
  mixing.bf16_mixes = p.mixes == PLUMB_MIXES_BF16;
  return mixing;
}

plumb_status launch_mhc_pre(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_mhc_pre_params*>(params);
  const Mixing mixing = pre_mixing(p);
  if (!is_legal_mixing(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!is_complete(mixing)) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  if (!fits_grid(mixing, device)) return PLUMB_UNSUPPORTED;
  plumb_status status = launch_matrix_partials(mixing, p.stream);
  if (status == PLUMB_UNSUPPORTED) {
    status = PLUMB_LAUNCH(mhc_pre_partials, partials_shape(mixing, device), p.stream, mixing);
  }
  if (status != PLUMB_OK) return status;
  const LaunchShape outputs = outputs_shape(mixing, device.wave_size);
  if (is_whole(mixing)) return PLUMB_LAUNCH(mhc_pre_outputs<true>, outputs, p.stream, mixing);
  return PLUMB_LAUNCH(mhc_pre_outputs<false>, outputs, p.stream, mixing);
}

}  // namespace

OpEntry mhc_pre() {
  return {"mhc_pre", launch_mhc_pre, mixing_numerics(),
          mixing_numerics_of<plumb_mhc_pre_params, pre_mixing>};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
