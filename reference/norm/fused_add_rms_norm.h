// SPDX-License-Identifier: Apache-2.0
//
// fused_add_rms_norm: stores residual = x + residual as bf16, and the norm of that sum. NormedSum
// says which rounding of the sum is normalised (operations spec, 7.2).
#pragma once

#include "reference/norm/row_norm.h"

namespace plumb::reference {

// Which value of the sum x + residual is normalised.
enum class NormedSum {
  stored,
  fp32,
  fp32_squares  // mean square of the fp32 sum, times the stored rows
};

struct FusedAddRmsNormInputs {
  const std::uint16_t* x = nullptr;         // bf16 [tokens, hidden]
  const std::uint16_t* residual = nullptr;  // bf16 [tokens, hidden]
  const std::uint16_t* stored = nullptr;    // bf16 [tokens, hidden]: the sum that a kernel stored
  const std::uint16_t* weight = nullptr;    // bf16 [hidden]
  std::int64_t tokens = 0, hidden = 0;
  std::int64_t x_row_stride = 0;  // elements; the others are contiguous
  double eps = 0;
  NormRounding rounding = NormRounding::once;
  NormedSum sum = NormedSum::stored;
};

struct FusedAddRmsNormOutputs {
  Estimate residual;  // bf16 [tokens, hidden]
  Estimate x;         // bf16 [tokens, hidden]: the norm
};

FusedAddRmsNormOutputs fused_add_rms_norm(const FusedAddRmsNormInputs& inputs,
                                          const Numerics& numerics);

}  // namespace plumb::reference
