// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/fused_add_rms_norm.h"

#include "reference/norm/rms_norm.h"

namespace plumb::reference {

FusedAddRmsNormOutputs fused_add_rms_norm(const FusedAddRmsNormInputs& inputs,
                                          const Numerics& numerics) {
  const std::int64_t hidden = inputs.hidden;
  const auto sum = [&](std::int64_t begin, std::int64_t end) {
    const auto x = [&](std::int64_t row) { return inputs.x + row * inputs.x_row_stride; };
    const auto residual = [&](std::int64_t row) { return inputs.residual + row * hidden; };
    return decoded_rows(begin, end, hidden, x, numerics) +
           decoded_rows(begin, end, hidden, residual, numerics);
  };
  const Estimate residual = estimate_rows(inputs.tokens, hidden, sum);
  if (inputs.sum == NormedSum::fp32_squares) {
    const auto stored = [&](std::int64_t begin, std::int64_t end) {
      const auto row_of = [&](std::int64_t row) { return inputs.stored + row * hidden; };
      return decoded_rows(begin, end, hidden, row_of, numerics);
    };
    return {residual, estimate_row_norm(inputs.tokens, hidden, sum, stored, inputs.weight,
                                        inputs.eps, inputs.rounding, numerics)};
  }
  if (inputs.sum == NormedSum::stored) {
    return {residual, rms_norm({inputs.stored, inputs.weight, inputs.tokens, hidden, hidden,
                                inputs.eps, inputs.rounding},
                               numerics)};
  }
  return {residual, estimate_row_norm(inputs.tokens, hidden, sum, inputs.weight, inputs.eps,
                                      inputs.rounding, numerics)};
}

}  // namespace plumb::reference
