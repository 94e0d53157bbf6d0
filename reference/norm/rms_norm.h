// SPDX-License-Identifier: Apache-2.0
//
// rms_norm: out[t,:] = x[t,:] / sqrt(mean(x[t,:]^2) + eps) * weight (operations spec, 7.1)
#pragma once

#include "reference/norm/row_norm.h"

namespace plumb::reference {

struct RmsNormInputs {
  const std::uint16_t* x = nullptr;       // bf16 [tokens, hidden]
  const std::uint16_t* weight = nullptr;  // bf16 [hidden]; nullptr = 1
  std::int64_t tokens = 0, hidden = 0;
  std::int64_t x_row_stride = 0;  // elements
  double eps = 0;
  NormRounding rounding = NormRounding::once;
};

// bf16 [tokens, hidden]
Estimate rms_norm(const RmsNormInputs& inputs, const Numerics& numerics);

}  // namespace plumb::reference
