// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/q_head_rms_norm_rope.h"

namespace plumb::reference {

Estimate q_head_rms_norm_rope(const QHeadRmsNormRopeInputs& inputs, const Numerics& numerics) {
  const std::int64_t heads = inputs.heads;
  const auto q = [&](std::int64_t row) {
    return inputs.q + row / heads * inputs.q_token_stride + row % heads * kHeadDim;
  };
  const auto turns = [&](std::int64_t row) {
    return inputs.cos_sin + inputs.rows[static_cast<std::size_t>(row / heads)] * kRopeDim;
  };
  return estimate_rows(inputs.tokens * heads, kHeadDim, [&](std::int64_t begin, std::int64_t end) {
    const Tracked x = decoded_rows(begin, end, kHeadDim, q, numerics);
    const Tracked r = row_factors(x, inputs.eps, inputs.rounding);
    const Tracked y = limited_rows(scaled_rows(x, r, inputs.rounding), r);
    return joined({sliced(y, 1, 0, kNopeDim),
                   rotate(sliced(y, 1, kNopeDim, kRopeDim), begin, turns, Rotation::forward)},
                  1);
  });
}

}  // namespace plumb::reference
