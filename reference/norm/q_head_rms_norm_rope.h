// SPDX-License-Identifier: Apache-2.0
//
// q_head_rms_norm_rope: RMS norm of each query head over 512 dims, without a weight, then RoPE of
// the last 64 dims. The norm stays in fp32 or is rounded to bf16 before RoPE (operations spec,
// 7.6).
#pragma once

#include "reference/norm/rope.h"
#include "reference/norm/row_norm.h"

namespace plumb::reference {

struct QHeadRmsNormRopeInputs {
  const std::uint16_t* q = nullptr;  // bf16 [tokens, heads, 512]
  const float* cos_sin = nullptr;    // [rows, 64]
  std::vector<std::int64_t> rows;    // row of cos_sin for each token
  std::int64_t tokens = 0, heads = 0;
  std::int64_t q_token_stride = 0;  // elements
  double eps = 0;
  NormRounding rounding = NormRounding::once;  // other values also round the norm before RoPE
};

// Returns bf16 [tokens * heads, 512].
Estimate q_head_rms_norm_rope(const QHeadRmsNormRopeInputs& inputs, const Numerics& numerics);

}  // namespace plumb::reference
