// SPDX-License-Identifier: Apache-2.0
//
// fused_add_rms_norm: block x of the grid takes row x; thread t owns columns t, t + block, ... in
// both passes, so that it overwrites only what it alone has read. Rows of x may be strided.
// Legal: any tokens that fit the grid's x, any hidden >= 1, block of 256.
#include "device/kernels/row_norm.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_KERNEL void fused_add_rms_norm_kernel(plumb_fused_add_rms_norm_params p) {
  PLUMB_SHARED(float, wave_partials, kMostWavesOfRowNorm);
  const std::int64_t row = block_index_x();
  std::uint16_t* const x = p.x + row * p.x_row_stride;
  std::uint16_t* const residual = p.residual + row * p.hidden;
  const auto sum_of = [=](std::int64_t i) { return load_bf16(x[i]) + load_bf16(residual[i]); };
  const auto term_of = [=](float sum) { return p.fp32_sum ? sum : load_bf16(store_bf16(sum)); };
  const float r = reciprocal_rms([=](std::int64_t i) { return term_of(sum_of(i)); }, p.hidden,
                                 p.eps, wave_partials);
  for (std::int64_t i = thread_index(); i < p.hidden; i += block_size()) {
    const float sum = sum_of(i);
    residual[i] = store_bf16(sum);
    x[i] = normalized(term_of(sum), r, p.weight, i, p.rounding == PLUMB_ROUND_TWICE);
  }
}

inline plumb_status launch_fused_add_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_fused_add_rms_norm_params*>(params);
  if (p.tokens < 0 || p.hidden < 1 || p.x_row_stride < p.hidden) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (!p.x || !p.residual || !p.weight) return PLUMB_INVALID_ARGUMENT;
  return PLUMB_LAUNCH(fused_add_rms_norm_kernel, (LaunchShape{p.tokens, 1, kRowNormBlock, 0}),
                      p.stream, p);
}

plumb_op_entry fused_add_rms_norm() {
  return {"fused_add_rms_norm", launch_fused_add_rms_norm, row_norm_numerics()};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
