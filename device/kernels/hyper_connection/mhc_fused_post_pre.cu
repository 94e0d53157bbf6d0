// SPDX-License-Identifier: Apache-2.0
//
// mhc_fused_post_pre. For up to unrounded_rows tokens, the kernel of the partial sums also makes
// the streams: it adds up their fp32 values and stores them rounded. For more tokens, another
// kernel stores the streams first, and the sums use the stored values. Thread maps and launch
// shapes: device/kernels/hyper_connection/mhc_mixing.h.
#include "device/kernels/hyper_connection/mhc_mixing.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_mhc_fused_post_pre_params;

plumb_mhc_post_params post_of(const Params& p) {
  plumb_mhc_post_params post{};
  post.x = p.x;
  post.residual = p.residual;
  post.post = p.post_before;
  post.comb = p.comb_before;
  post.out = p.residual_out;
  post.tokens = p.tokens;
  post.hidden = p.hidden;
  post.residual_token_stride = p.residual_token_stride;
  post.residual_slot_stride = p.residual_slot_stride;
  post.out_token_stride = p.residual_out_token_stride;
  post.out_slot_stride = p.residual_out_slot_stride;
  return post;
}

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostTokenThreads, 3) void mhc_fused_post(plumb_mhc_post_params p) {
  store_mixed_streams<whole>(p);
}

PLUMB_KERNEL void mhc_fused_partials(Mixing p) {
  PLUMB_SHARED(float, weights, kStaged);
  mix_partials(p, StoredStreams{p}, weights);
}

PLUMB_KERNEL void mhc_fused_small_partials(Mixing p, plumb_mhc_post_params post) {
  PLUMB_SHARED(float, weights, kStaged);
  const auto x_of = [&](std::int64_t token, std::int64_t k) {
    const std::int64_t n = k / p.hidden, h = k - n * p.hidden;
    float residual[kStreams];
    for (int m = 0; m < kStreams; ++m) {
      residual[m] = load_bf16(
          post.residual[token * post.residual_token_stride + m * post.residual_slot_stride + h]);
    }
    const float x =
        mixed_stream(post.post + token * kStreams, post.comb + token * kStreams * kStreams,
                     static_cast<int>(n), load_bf16(post.x[token * p.hidden + h]), residual);
    post.out[token * post.out_token_stride + n * post.out_slot_stride + h] = store_bf16(x);
    return x;
  };
  mix_partials(p, x_of, weights);
}

template <bool whole>
PLUMB_KERNEL PLUMB_BOUNDS(kMostTokenThreads, 2) void mhc_fused_outputs(Mixing p) {
  PLUMB_SHARED(float, pre, kStreams);
  PLUMB_SHARED(float, per_wave, kMostWaves);
  mix_outputs<whole>(p, pre, per_wave);
}

Mixing fused_mixing(const Params& p) {
  Mixing mixing = mixing_of(p, kStreams * p.hidden);
  mixing.streams = p.residual_out;
  mixing.token_stride = p.residual_out_token_stride;
  mixing.slot_stride = p.residual_out_slot_stride;
  mixing.bf16_split = p.gemm_operand == PLUMB_GEMM_OPERAND_BF16_SPLIT;
  return mixing;
}

// Matrix units take only rounded streams, so small batches keep the numerics of the other kernels.
void fused_numerics_of(const void* params, plumb_numerics* numerics) {
  const auto& p = *static_cast<const Params*>(params);
  if (p.tokens > p.unrounded_rows) mixing_numerics_of<Params, fused_mixing>(params, numerics);
}

plumb_status launch_sums(const Params& p, const Mixing& mixing, const Properties& device) {
  const LaunchShape partials = partials_shape(mixing, device);
  const plumb_mhc_post_params post = post_of(p);
  if (p.tokens <= p.unrounded_rows) {
    return PLUMB_LAUNCH(mhc_fused_small_partials, partials, p.stream, mixing, post);
  }
  const LaunchShape by_token = token_shape(p.tokens, p.hidden, device.wave_size);
  const plumb_status status = is_whole(post)
                                  ? PLUMB_LAUNCH(mhc_fused_post<true>, by_token, p.stream, post)
                                  : PLUMB_LAUNCH(mhc_fused_post<false>, by_token, p.stream, post);
  if (status != PLUMB_OK) return status;
  const plumb_status by_matrices = launch_matrix_partials(mixing, p.stream);
  if (by_matrices != PLUMB_UNSUPPORTED) return by_matrices;
  return PLUMB_LAUNCH(mhc_fused_partials, partials, p.stream, mixing);
}

plumb_status launch_mhc_fused_post_pre(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  const Mixing mixing = fused_mixing(p);
  if (!is_legal_mixing(p) || p.residual_out_slot_stride < p.hidden ||
      p.residual_out_token_stride < p.hidden) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.tokens == 0) return PLUMB_OK;
  if (!is_complete(mixing) || !p.x || !p.residual || !p.post_before || !p.comb_before) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const Properties& device = stream_properties(p.stream);
  if (!fits_grid(mixing, device)) return PLUMB_UNSUPPORTED;
  const plumb_status status = launch_sums(p, mixing, device);
  if (status != PLUMB_OK) return status;
  const LaunchShape outputs = outputs_shape(mixing, device.wave_size);
  if (is_whole(mixing)) return PLUMB_LAUNCH(mhc_fused_outputs<true>, outputs, p.stream, mixing);
  return PLUMB_LAUNCH(mhc_fused_outputs<false>, outputs, p.stream, mixing);
}

}  // namespace

OpEntry mhc_fused_post_pre() {
  return {"mhc_fused_post_pre", launch_mhc_fused_post_pre, mixing_numerics(), fused_numerics_of};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
