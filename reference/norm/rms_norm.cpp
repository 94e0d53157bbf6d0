// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/rms_norm.h"

namespace plumb::reference {

Estimate rms_norm(const RmsNormInputs& inputs, const Numerics& numerics) {
  Estimate estimate;
  estimate.resize(inputs.tokens, inputs.hidden);
  if (inputs.rounding == NormRounding::twice) estimate.shift.assign(estimate.value.size(), 0);
  const std::vector<double> weight =
      inputs.weight ? decode_row(inputs.weight, inputs.hidden) : std::vector<double>{};
  parallel_for(inputs.tokens, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto x = decode_row(inputs.x + row * inputs.x_row_stride, inputs.hidden);
      estimate_row_norm(x, weight, inputs.eps, inputs.rounding, numerics, row, estimate);
    }
  });
  return estimate;
}

}  // namespace plumb::reference
