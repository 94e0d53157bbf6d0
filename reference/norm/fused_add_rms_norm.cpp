// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/fused_add_rms_norm.h"

#include <algorithm>

#include "reference/norm/rms_norm.h"

namespace plumb::reference {

namespace {

std::vector<double> sum_of_row(const FusedAddRmsNormInputs& inputs, std::int64_t row) {
  std::vector<double> sum = decode_row(inputs.x + row * inputs.x_row_stride, inputs.hidden);
  const std::vector<double> residual =
      decode_row(inputs.residual + row * inputs.hidden, inputs.hidden);
  std::transform(sum.begin(), sum.end(), residual.begin(), sum.begin(), std::plus<>());
  return sum;
}

// No error but that of the store: two bf16 numbers whose exponents differ by 16 or less have an
// exact sum in fp32, and of others the smaller one is too small to decide any rounding to bf16.
Estimate residual_of(const FusedAddRmsNormInputs& inputs) {
  Estimate estimate;
  estimate.resize(inputs.tokens, inputs.hidden);
  for (std::int64_t row = 0; row < inputs.tokens; ++row) {
    const std::vector<double> sum = sum_of_row(inputs, row);
    std::copy(sum.begin(), sum.end(), estimate.value.begin() + row * inputs.hidden);
  }
  return estimate;
}

Estimate norm_of_fp32_sum(const FusedAddRmsNormInputs& inputs, const Numerics& numerics) {
  Estimate estimate;
  estimate.resize(inputs.tokens, inputs.hidden);
  if (inputs.rounding == NormRounding::twice) estimate.shift.assign(estimate.value.size(), 0);
  const std::vector<double> weight = decode_row(inputs.weight, inputs.hidden);
  parallel_for(inputs.tokens, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      estimate_row_norm(sum_of_row(inputs, row), weight, inputs.eps, inputs.rounding, numerics, row,
                        estimate, kUnitF32);
    }
  });
  return estimate;
}

}  // namespace

FusedAddRmsNormOutputs fused_add_rms_norm(const FusedAddRmsNormInputs& inputs,
                                          const Numerics& numerics) {
  if (inputs.fp32_sum) return {residual_of(inputs), norm_of_fp32_sum(inputs, numerics)};
  return {residual_of(inputs), rms_norm({inputs.stored, inputs.weight, inputs.tokens, inputs.hidden,
                                         inputs.hidden, inputs.eps, inputs.rounding},
                                        numerics)};
}

}  // namespace plumb::reference
