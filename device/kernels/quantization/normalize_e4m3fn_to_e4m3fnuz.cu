// SPDX-License-Identifier: Apache-2.0
//
// normalize_e4m3fn_to_e4m3fnuz: thread i of the grid converts byte i of the weights (row
// i / columns), weight scale i and input scale i, if they exist. Legal: anything that fits the
// grid's x; outputs may be the inputs themselves.
#include <plumb/ops/quantization.h>

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kNormalizeBlock = 256;

PLUMB_DEVICE void double_scale(const float* scale, float* out, std::int64_t count,
                               std::int64_t index) {
  if (index < count) out[index] = 2.0F * scale[index];
}

// A code in e4m3fnuz has half its value in e4m3fn, so scales are doubled. 0x80, which is -0 in
// e4m3fn, would be NaN, so it becomes 0.
PLUMB_KERNEL void normalize_kernel(plumb_normalize_e4m3fn_to_e4m3fnuz_params p) {
  const std::int64_t index = std::int64_t{block_index_x()} * block_size() + thread_index();
  double_scale(p.weight_scale, p.weight_scale_out, p.weight_scales, index);
  double_scale(p.input_scale, p.input_scale_out, p.input_scales, index);
  if (index >= p.rows * p.columns) return;
  const std::int64_t row = index / p.columns, column = index % p.columns;
  const std::uint8_t code = p.weight[row * p.weight_row_stride + column];
  p.weight_out[row * p.weight_out_row_stride + column] = code == 0x80U ? std::uint8_t{0} : code;
}

bool is_legal(const plumb_normalize_e4m3fn_to_e4m3fnuz_params& p) {
  if (p.rows < 0 || p.columns < 1 || p.weight_row_stride < p.columns) return false;
  if (p.weight_out_row_stride < p.columns) return false;
  if (p.weight_scales < 0 || p.input_scales < 0) return false;
  if (p.rows > 0 && (!p.weight || !p.weight_out)) return false;
  if (p.weight_scales > 0 && (!p.weight_scale || !p.weight_scale_out)) return false;
  return p.input_scales == 0 || (p.input_scale && p.input_scale_out);
}

plumb_status launch_normalize(const void* params) {
  const auto& p = *static_cast<const plumb_normalize_e4m3fn_to_e4m3fnuz_params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  std::int64_t most = p.rows * p.columns;
  most = most > p.weight_scales ? most : p.weight_scales;
  most = most > p.input_scales ? most : p.input_scales;
  if (most == 0) return PLUMB_OK;
  const LaunchShape shape{(most + kNormalizeBlock - 1) / kNormalizeBlock, 1, kNormalizeBlock, 0};
  return PLUMB_LAUNCH(normalize_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry normalize_e4m3fn_to_e4m3fnuz() {
  return {"normalize_e4m3fn_to_e4m3fnuz",
          launch_normalize,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_F32,
           .function_ulp = 0.5F,
           .deterministic = 1}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
