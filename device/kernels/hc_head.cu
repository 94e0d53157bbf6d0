// SPDX-License-Identifier: Apache-2.0
//
// hc_head: the gated sum of the four streams before the LM head. Block b takes token b; its threads
// share the columns, first for the mean square, then for the four mixes, then for the sum. Launch:
// token_shape.
#include "device/kernels/hyper_connection.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_hc_head_params;

PLUMB_DEVICE float inverse_rms(const Params& p, const std::uint16_t* streams, float* per_wave) {
  float square_sum = 0;
  for (int slot = 0; slot < kStreams; ++slot) {
    for (std::int64_t h = thread_index(); h < p.hidden; h += block_size()) {
      const float x = load_bf16(streams[slot * p.hidden_slot_stride + h]);
      square_sum += x * x;
    }
  }
  const float total = block_tree_sum(square_sum, per_wave);
  return rsqrt_approx(total / static_cast<float>(kStreams * p.hidden) + p.rms_eps);
}

// This thread's share of the four mixes. The old variant rounds x * r to bf16 and multiplies that.
PLUMB_DEVICE void add_products(const Params& p, const std::uint16_t* streams, float r,
                               float* mixes) {
  for (int slot = 0; slot < kStreams; ++slot) {
    for (std::int64_t h = thread_index(); h < p.hidden; h += block_size()) {
      std::uint16_t bits = streams[slot * p.hidden_slot_stride + h];
      if (p.rounding == PLUMB_ROUND_TWICE) bits = store_bf16(load_bf16(bits) * r);
      const float x = load_bf16(bits);
      for (int j = 0; j < kStreams; ++j) {
        mixes[j] += x * p.fn[(kStreams * j + slot) * p.hidden + h];
      }
    }
  }
}

PLUMB_KERNEL void hc_head_kernel(Params p) {
  PLUMB_SHARED(float, per_wave, (kStreams + 1) * kMostWaves);
  const std::int64_t token = block_index_x();
  const std::uint16_t* streams = p.hidden_states + token * p.hidden_token_stride;
  const float r = inverse_rms(p, streams, per_wave);
  float mixes[kStreams] = {}, gates[kStreams];
  add_products(p, streams, r, mixes);
  for (int j = 0; j < kStreams; ++j) {
    const float sum = block_tree_sum(mixes[j], per_wave + (j + 1) * kMostWaves);
    const float mix = p.rounding == PLUMB_ROUND_TWICE ? sum : sum * r;
    gates[j] = sigmoid(mix * p.scale[0] + p.base[j]) + p.hc_eps;
  }
  for (std::int64_t h = thread_index(); h < p.hidden; h += block_size()) {
    p.out[token * p.hidden + h] = store_bf16(gated_sum(streams, p.hidden_slot_stride, h, gates));
  }
}

plumb_status launch_hc_head(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (p.tokens < 0 || p.hidden < 1) return PLUMB_INVALID_ARGUMENT;
  if (p.rounding != PLUMB_ROUND_ONCE && p.rounding != PLUMB_ROUND_TWICE) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.hidden_states || !p.fn || !p.scale || !p.base || !p.out) return PLUMB_INVALID_ARGUMENT;
  const Properties& device = stream_properties(p.stream);
  if (p.tokens > device.max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape shape = token_shape(p.tokens, p.hidden, device.wave_size);
  return PLUMB_LAUNCH(hc_head_kernel, shape, p.stream, p);
}

}  // namespace

plumb_op_entry hc_head() {
  // Each of up to 256 threads adds the terms of its columns, four per column, and a tree joins the
  // threads: for every hidden no deeper than 64 chains would be.
  return {"hc_head", launch_hc_head, {PLUMB_F32, PLUMB_F32, 64, PLUMB_F32, 2, 1, 0}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
