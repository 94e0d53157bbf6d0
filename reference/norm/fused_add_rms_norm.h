// SPDX-License-Identifier: Apache-2.0
//
// fused_add_rms_norm: residual = x + residual, stored as bf16, and the norm of that sum, as it was
// stored, as fp32 has it, or with the squares of the one and the rows of the other
// (operations spec, 7.2)
#pragma once

#include "reference/norm/row_norm.h"

namespace plumb::reference {

// What of the sum the norm is of.
enum class NormedSum {
  stored,
  fp32,
  fp32_squares  // its squares in fp32, its rows as they are stored
};

struct FusedAddRmsNormInputs {
  const std::uint16_t* x = nullptr;         // bf16 [tokens, hidden]
  const std::uint16_t* residual = nullptr;  // bf16 [tokens, hidden]
  const std::uint16_t* stored = nullptr;    // bf16 [tokens, hidden]: the sum that a device stored
  const std::uint16_t* weight = nullptr;    // bf16 [hidden]
  std::int64_t tokens = 0, hidden = 0;
  std::int64_t x_row_stride = 0;  // elements; the others are contiguous
  double eps = 0;
  NormRounding rounding = NormRounding::once;
  NormedSum sum = NormedSum::stored;
};

struct FusedAddRmsNormOutputs {
  Estimate residual;  // bf16 [tokens, hidden]
  Estimate x;         // bf16 [tokens, hidden]: the norm of what `sum` names
};

FusedAddRmsNormOutputs fused_add_rms_norm(const FusedAddRmsNormInputs& inputs,
                                          const Numerics& numerics);

}  // namespace plumb::reference
