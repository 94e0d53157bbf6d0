// SPDX-License-Identifier: Apache-2.0
#include "reference/norm/inverse_rope.h"

#include <cmath>

#include "reference/norm/row_norm.h"

namespace plumb::reference {

Estimate inverse_rope(const InverseRopeInputs& inputs) {
  Estimate estimate;
  estimate.resize(inputs.tokens * inputs.heads, kRopeDim);
  for (std::int64_t row = 0; row < estimate.rows; ++row) {
    const std::int64_t token = row / inputs.heads, head = row % inputs.heads;
    const auto x =
        decode_row(inputs.x + token * inputs.x_token_stride + head * kHeadDim + kNopeDim, kRopeDim);
    const auto rotated =
        rotate(x.data(), inputs.cos_sin + inputs.rows[token] * kRopeDim, Rotation::inverse);
    double variance = 0;
    for (int i = 0; i < kRopeDim; ++i) {
      const std::int64_t at = row * kRopeDim + i;
      estimate.value[at] = rotated[i].value;
      estimate.sigma[at] = std::sqrt(rotated[i].variance);
      estimate.worst[at] = rotated[i].worst;
      variance += rotated[i].variance;
    }
    estimate.row_mean_sigma[row] = std::sqrt(variance) / kRopeDim;
  }
  return estimate;
}

}  // namespace plumb::reference
