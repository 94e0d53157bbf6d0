// SPDX-License-Identifier: Apache-2.0
//
// inverse_rope: rotates the last 64 dims of each head of the attention's output back (operations
// spec, 2.11).
#pragma once

#include "reference/norm/rope.h"

namespace plumb::reference {

struct InverseRopeInputs {
  const std::uint16_t* x = nullptr;  // bf16 [tokens, heads, 512]
  const float* cos_sin = nullptr;    // [rows, 64]
  std::vector<std::int64_t> rows;    // row of cos_sin for each token
  std::int64_t tokens = 0, heads = 0;
  std::int64_t x_token_stride = 0;  // elements
};

// Returns bf16 [tokens * heads, 64]: the rotated dims. The op leaves the other dims unchanged.
Estimate inverse_rope(const InverseRopeInputs& inputs);

}  // namespace plumb::reference
