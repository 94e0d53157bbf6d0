// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/inverse_rope.h"

#include "reference/norm/row_norm.h"

namespace plumb::reference {

Estimate inverse_rope(const InverseRopeInputs& inputs) {
  const std::int64_t heads = inputs.heads;
  const auto x = [&](std::int64_t row) {
    return inputs.x + row / heads * inputs.x_token_stride + row % heads * kHeadDim + kNopeDim;
  };
  const auto turns = [&](std::int64_t row) {
    return inputs.cos_sin + inputs.rows[static_cast<std::size_t>(row / heads)] * kRopeDim;
  };
  return estimate_rows(inputs.tokens * heads, kRopeDim, [&](std::int64_t begin, std::int64_t end) {
    return rotate(decoded_rows(begin, end, kRopeDim, x, {}), begin, turns, Rotation::inverse);
  });
}

}  // namespace plumb::reference
