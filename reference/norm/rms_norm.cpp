// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/rms_norm.h"

namespace plumb::reference {

Estimate rms_norm(const RmsNormInputs& inputs, const Numerics& numerics) {
  const auto x = [&](std::int64_t begin, std::int64_t end) {
    const auto at = [&](std::int64_t row) { return inputs.x + row * inputs.x_row_stride; };
    return decoded_rows(begin, end, inputs.hidden, at, numerics);
  };
  return estimate_row_norm(inputs.tokens, inputs.hidden, x, inputs.weight, inputs.eps,
                           inputs.rounding, numerics);
}

}  // namespace plumb::reference
