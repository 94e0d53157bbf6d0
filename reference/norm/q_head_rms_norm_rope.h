// SPDX-License-Identifier: Apache-2.0
//
// q_head_rms_norm_rope: each query head's row norm over 512 dims, without a weight, then RoPE of
// the last 64, of the norm in fp32 or of the norm rounded to bf16   (operations spec, 7.6)
#pragma once

#include "reference/norm/rope.h"
#include "reference/norm/row_norm.h"

namespace plumb::reference {

struct QHeadRmsNormRopeInputs {
  const std::uint16_t* q = nullptr;  // bf16 [tokens, heads, 512]
  const float* cos_sin = nullptr;    // [rows, 64]
  std::vector<std::int64_t> rows;    // of cos_sin, one per token
  std::int64_t tokens = 0, heads = 0;
  std::int64_t q_token_stride = 0;  // elements
  double eps = 0;
  NormRounding rounding = NormRounding::once;  // other values: also of the norm, before RoPE
};

// bf16 [tokens * heads, 512]
Estimate q_head_rms_norm_rope(const QHeadRmsNormRopeInputs& inputs, const Numerics& numerics);

}  // namespace plumb::reference
