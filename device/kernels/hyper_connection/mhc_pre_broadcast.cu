// SPDX-License-Identifier: Apache-2.0
//
// mhc_pre_broadcast: the mixing in front of a sublayer
// (device/kernels/hyper_connection/mhc_mixing.h). One stream stands for four equal ones, which are
// also written. K is `hidden`.
#include "device/kernels/hyper_connection/mhc_mixing.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

PLUMB_KERNEL void mhc_broadcast_partials(Mixing p) {
  PLUMB_SHARED(float, weights, kStaged);
  mix_partials(p, StoredStreams{p}, weights);
}

struct CopiedStreams {
  std::uint16_t* first;
  std::int64_t token_stride, slot_stride;
};

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostTokenThreads, 2) void mhc_broadcast_outputs(Mixing p,
                                                                           CopiedStreams out) {
  PLUMB_SHARED(float, pre, kStreams);
  PLUMB_SHARED(float, per_wave, kMostWaves);
  const std::int64_t token = outputs_token(p);
  if (token >= 0) {
    for (std::int64_t h = thread_index() * kBf16x8; h < p.hidden; h += block_size() * kBf16x8) {
      const Bf16x8 bits = load_bf16x8(p.streams + token * p.token_stride + h, p.hidden - h, whole);
      for (int n = 0; n < kStreams; ++n) {
        store_bf16x8(out.first + token * out.token_stride + n * out.slot_stride + h, bits,
                     p.hidden - h, whole);
      }
    }
  }
  mix_outputs<whole>(p, pre, per_wave);
}

Mixing broadcast_mixing(const plumb_mhc_pre_broadcast_params& p) {
  Mixing mixing = mixing_of(p, p.hidden);
  mixing.streams = p.residual;
  mixing.token_stride = p.residual_token_stride;
  mixing.slot_stride = 0;
  return mixing;
}

plumb_status launch_mhc_pre_broadcast(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_mhc_pre_broadcast_params*>(params);
  const Mixing mixing = broadcast_mixing(p);
  const CopiedStreams out{p.residual_out, p.residual_out_token_stride, p.residual_out_slot_stride};
  if (!is_legal_mixing(p) || out.slot_stride < p.hidden || out.token_stride < p.hidden) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!is_complete(mixing) || !p.residual_out) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  if (!fits_grid(mixing, device)) return PLUMB_UNSUPPORTED;
  plumb_status status = launch_matrix_partials(mixing, p.stream);
  if (status == PLUMB_UNSUPPORTED) {
    status = PLUMB_LAUNCH(mhc_broadcast_partials, partials_shape(mixing, device), p.stream, mixing);
  }
  if (status != PLUMB_OK) return status;
  const LaunchShape outputs = outputs_shape(mixing, device.wave_size);
  if (is_whole(mixing) && are_whole({p.hidden, out.token_stride, out.slot_stride}) &&
      start_whole(p.residual_out)) {
    return PLUMB_LAUNCH(mhc_broadcast_outputs<true>, outputs, p.stream, mixing, out);
  }
  return PLUMB_LAUNCH(mhc_broadcast_outputs<false>, outputs, p.stream, mixing, out);
}

}  // namespace

OpEntry mhc_pre_broadcast() {
  return {"mhc_pre_broadcast", launch_mhc_pre_broadcast, mixing_numerics(),
          mixing_numerics_of<plumb_mhc_pre_broadcast_params, broadcast_mixing>};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
